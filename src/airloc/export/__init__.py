"""Export of agents as ONNX graphs, with a runner that needs neither PyTorch nor airloc."""

from airloc.export.export import ExportReport, export_agent

__all__ = ["ExportReport", "export_agent"]
