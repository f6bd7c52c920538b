"""What every server of this package stands on: addresses, bodies within bounds, clients that do not finish."""
