"""Photos as drones write them: JPEGs with EXIF and XMP of DJI, Autel, Parrot and Skydio."""

import io
from typing import Any

import numpy as np
from PIL import ExifTags, Image

HEAD = '<x:xmpmeta xmlns:x="adobe:ns:meta/"><rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#">'
TAIL = "</rdf:RDF></x:xmpmeta>"


def dji(lat: float, lon: float, height: float, yaw: float, pitch: float = -90.0) -> str:
    return (
        f'{HEAD}<rdf:Description xmlns:drone-dji="http://www.dji.com/drone-dji/1.0/" '
        f'drone-dji:AbsoluteAltitude="+410.10" '
        f'drone-dji:RelativeAltitude="{height:+.2f}" drone-dji:GimbalYawDegree="{yaw:+.2f}" '
        f'drone-dji:GimbalPitchDegree="{pitch:+.2f}" drone-dji:FlightYawDegree="+7.00" '
        f'drone-dji:GpsLatitude="{lat:.9f}" drone-dji:GpsLongtitude="{lon:.9f}"/>{TAIL}'
    )


def autel(lat: float, lon: float, height: float, yaw: float, pitch: float = -90.0) -> str:
    return (
        f'{HEAD}<rdf:Description xmlns:drone="http://www.autelrobotics.com/drone/1.0/" '
        f'xmlns:Camera="http://pix4d.com/camera/1.0/" Camera:Yaw="3.0" Camera:Pitch="0" '
        f'drone:RelativeAltitude="{height}" '
        f'drone:GimbalYawDegree="{yaw}" drone:GimbalPitchDegree="{pitch}" drone:GpsLatitude="{lat}" '
        f'drone:GpsLongitude="{lon}"/>{TAIL}'
    )


def parrot(lat: float, lon: float, height: float, yaw: float, pitch: float = -90.0) -> str:
    """Parrot writes the position to EXIF only, and fields as elements."""
    del lat, lon
    return (
        f'{HEAD}<rdf:Description xmlns:drone-parrot="http://www.parrot.com/drone-parrot/1.0/" '
        f'xmlns:Camera="http://pix4d.com/camera/1.0/"><drone-parrot:CameraYawDegree>{yaw}</drone-parrot:CameraYawDegree>'
        f"<drone-parrot:CameraPitchDegree>{pitch}</drone-parrot:CameraPitchDegree>"
        f"<Camera:AboveGroundAltitude>{round(10 * height)}/10</Camera:AboveGroundAltitude></rdf:Description>{TAIL}"
    )


def skydio(lat: float, lon: float, height: float, yaw: float, pitch: float = -90.0) -> str:
    return (
        f'{HEAD}<rdf:Description xmlns:drone-skydio="https://www.skydio.com/drone-skydio/1.0/" '
        f'drone-skydio:Latitude="{lat}" drone-skydio:Longitude="{lon}" drone-skydio:RelativeAltitude="{height}">'
        f'<drone-skydio:CameraOrientationNED rdf:parseType="Resource"><drone-skydio:Yaw>{yaw}</drone-skydio:Yaw>'
        f"<drone-skydio:Pitch>{pitch}</drone-skydio:Pitch></drone-skydio:CameraOrientationNED></rdf:Description>{TAIL}"
    )


def jpeg(pixels: np.ndarray, xmp: str | bytes = b"", position: tuple[float, float] | None = None, **tags: Any) -> bytes:
    """A JPEG with an XMP packet, a position in EXIF, and further EXIF tags by name."""
    image = Image.fromarray(pixels)
    exif = image.getexif()
    if position is not None:
        gps = exif.get_ifd(ExifTags.IFD.GPSInfo)
        for first, angle, letters in ((1, position[0], "NS"), (3, position[1], "EW")):
            degrees, minutes = divmod(abs(angle), 1)
            gps[first] = letters[int(angle < 0)]
            gps[first + 1] = (degrees, (minutes * 60) // 1, (minutes * 60) % 1 * 60)
        if "direction" in tags:
            gps[17] = tags.pop("direction")
    for name, value in tags.items():
        exif.get_ifd(ExifTags.IFD.Exif)[ExifTags.Base[name]] = value
    buffer = io.BytesIO()
    packet = xmp.encode() if isinstance(xmp, str) else xmp
    image.save(buffer, "JPEG", quality=92, exif=exif, xmp=packet)
    return buffer.getvalue()
