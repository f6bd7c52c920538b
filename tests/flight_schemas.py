"""Schemas of DJI's waylines and Litchi's missions, written from the public descriptions of the formats.

DJI: https://developer.dji.com/doc/cloud-api-tutorial/en/api-reference/dji-wpml/overview.html. An element is a range of
numbers, a set of words, or the elements inside it; those that begin with `?` are optional.
Litchi: https://www.litchiutilities.com/docs/litchiCsv.php, by column.
"""

import csv
import io
from xml.etree import ElementTree

KML, WPML = "{http://www.opengis.net/kml/2.2}", "{http://www.dji.com/wpmz/1.0.2}"
Range = tuple[float, float]
ANY = (float("-inf"), float("inf"))
FLAG = {"0", "1"}

HEADING = {
    "waypointHeadingMode": {"followWayline", "manually", "fixed", "smoothTransition", "towardPOI"},
    "?waypointHeadingAngle": (-180, 180),
    "waypointHeadingPathMode": {"clockwise", "counterClockwise", "followBadArc"},
}
TURN_MODES = {
    "coordinateTurn",
    "toPointAndStopWithDiscontinuityCurvature",
    "toPointAndStopWithContinuityCurvature",
    "toPointAndPassWithContinuityCurvature",
}
TURN = {"waypointTurnMode": TURN_MODES, "?waypointTurnDampingDist": (0, 1e6)}
GIMBAL = {
    "payloadPositionIndex": {"0", "1", "2"},
    "gimbalHeadingYawBase": {"north"},
    "gimbalRotateMode": {"absoluteAngle"},
    "gimbalPitchRotateEnable": FLAG,
    "gimbalPitchRotateAngle": (-120, 45),
    "gimbalRollRotateEnable": FLAG,
    "gimbalRollRotateAngle": (-180, 180),
    "gimbalYawRotateEnable": FLAG,
    "gimbalYawRotateAngle": (-180, 180),
    "gimbalRotateTimeEnable": FLAG,
    "gimbalRotateTime": (0, 1e6),
}
FUNCTIONS = {
    "gimbalRotate": GIMBAL,
    "hover": {"hoverTime": (0, 1e6)},
    "takePhoto": {
        "payloadPositionIndex": {"0", "1", "2"},
        "?fileSuffix": None,
        "payloadLensIndex": {"zoom", "wide", "ir", "narrow_band", "visable"},
        "useGlobalPayloadLensIndex": FLAG,
    },
}
ACTION_GROUP = {
    "actionGroupId": (0, 65535),
    "actionGroupStartIndex": (0, 65535),
    "actionGroupEndIndex": (0, 65535),
    "actionGroupMode": {"sequence"},
    "actionTrigger": {
        "actionTriggerType": {"reachPoint", "betweenAdjacentPoints", "multipleTiming", "multipleDistance"}
    },
    "action": {"actionId": (0, 65535), "actionActuatorFunc": set(FUNCTIONS), "actionActuatorFuncParam": FUNCTIONS},
}
MISSION = {
    "flyToWaylineMode": {"safely", "pointToPoint"},
    "finishAction": {"goHome", "noAction", "autoLand", "gotoFirstWaypoint"},
    "exitOnRCLost": {"goContinue", "executeLostAction"},
    "?executeRCLostAction": {"goBack", "landing", "hover"},
    "takeOffSecurityHeight": (1.2, 1500),
    "globalTransitionalSpeed": (1, 15),
    "droneInfo": {"droneEnumValue": (0, 1000), "?droneSubEnumValue": (0, 10)},
    "payloadInfo": {"payloadEnumValue": (0, 1e6), "payloadPositionIndex": {"0", "1", "2"}},
}
COMMON = {
    "index": (0, 65535),
    "waypointSpeed": (1, 15),
    "waypointHeadingParam": HEADING,
    "waypointTurnParam": TURN,
    "?useStraightLine": FLAG,
    "?actionGroup": ACTION_GROUP,
}
TEMPLATE_FOLDER = {
    "templateType": {"waypoint"},
    "templateId": (0, 65535),
    "autoFlightSpeed": (1, 15),
    "waylineCoordinateSysParam": {
        "coordinateMode": {"WGS84"},
        "heightMode": {"EGM96", "relativeToStartPoint", "aboveGroundLevel", "realTimeFollowSurface"},
    },
    "gimbalPitchMode": {"manual", "usePointSetting"},
    "globalHeight": ANY,
    "globalWaypointHeadingParam": HEADING,
    "globalWaypointTurnMode": TURN_MODES,
    "?globalUseStraightLine": FLAG,
}
TEMPLATE_PLACEMARK = COMMON | {
    "ellipsoidHeight": ANY,
    "height": ANY,
    "useGlobalHeight": FLAG,
    "useGlobalSpeed": FLAG,
    "useGlobalHeadingParam": FLAG,
    "useGlobalTurnParam": FLAG,
    "gimbalPitchAngle": (-120, 45),
}
WAYLINE_FOLDER = {
    "templateId": (0, 65535),
    "executeHeightMode": {"WGS84", "relativeToStartPoint", "realTimeFollowSurface"},
    "waylineId": (0, 65535),
    "?distance": (0, 1e9),
    "?duration": (0, 1e9),
    "autoFlightSpeed": (1, 15),
}
WAYLINE_PLACEMARK = COMMON | {"executeHeight": ANY}
DOCUMENT = {"?author": None, "?createTime": (0, 1e15), "?updateTime": (0, 1e15), "missionConfig": MISSION}


def wayline_faults(text: bytes, template: bool) -> list[str]:
    """Return what is missing, unknown or out of range in a file of a wayline."""
    document = ElementTree.fromstring(text).find(f"{KML}Document")
    assert document is not None
    folder = document.find(f"{KML}Folder")
    assert folder is not None
    faults = _faults(document, DOCUMENT, "Document")
    faults += _faults(folder, TEMPLATE_FOLDER if template else WAYLINE_FOLDER, "Folder")
    placemarks = folder.findall(f"{KML}Placemark")
    for placemark in placemarks:
        faults += _faults(placemark, TEMPLATE_PLACEMARK if template else WAYLINE_PLACEMARK, "Placemark")
        assert placemark.find(f"{KML}Point/{KML}coordinates") is not None
    indices = [placemark.findtext(f"{WPML}index") for placemark in placemarks]
    return faults + [f"indices {indices}"] * (indices != [str(number) for number in range(len(placemarks))])


def _faults(node: ElementTree.Element, schema: dict, name: str) -> list[str]:
    faults, seen = [], {child.tag.removeprefix(WPML) for child in node if child.tag.startswith(WPML)}
    faults += [f"{name} has no {key}" for key in schema if not key.startswith("?") and key not in seen]
    for child in node:
        if not child.tag.startswith(WPML):
            continue
        key = child.tag.removeprefix(WPML)
        if key not in schema and f"?{key}" not in schema:
            faults.append(f"{name} has {key}")
            continue
        rule = schema.get(key, schema.get(f"?{key}"))
        if rule is FUNCTIONS:
            rule = FUNCTIONS[node.findtext(f"{WPML}actionActuatorFunc") or ""]
        faults += _faults(child, rule, key) if isinstance(rule, dict) else _value_faults(child.text or "", rule, key)
    return faults


def _value_faults(text: str, rule: set[str] | Range | None, name: str) -> list[str]:
    if rule is None or (isinstance(rule, set) and text in rule):
        return []
    if isinstance(rule, set):
        return [f"{name} is {text}"]
    return [] if rule[0] <= float(text) <= rule[1] else [f"{name} is {text}, not in {rule}"]


LITCHI: dict[str, Range | set[str]] = {
    "latitude": (-90, 90),
    "longitude": (-180, 180),
    "altitude(m)": (-200, 500),
    "heading(deg)": (0, 360),
    "curvesize(m)": (0, 1000),
    "rotationdir": FLAG,
    "gimbalmode": {"0", "1", "2"},
    "gimbalpitchangle": (-90, 30),
    **{f"actiontype{number}": {"-1", "0", "1", "2", "3", "4", "5"} for number in range(1, 16)},
    **{f"actionparam{number}": (-90, 32000) for number in range(1, 16)},
    "altitudemode": FLAG,
    "speed(m/s)": (0, 15),
    "poi_latitude": (-90, 90),
    "poi_longitude": (-180, 180),
    "poi_altitude(m)": (-200, 500),
    "poi_altitudemode": FLAG,
    "photo_timeinterval": (-1, 60),
    "photo_distinterval": (-1, 1000),
}
MOST_LITCHI = 99


def litchi_faults(text: str) -> list[str]:
    """Return what is missing, unknown or out of range in a mission of Litchi."""
    rows = list(csv.DictReader(io.StringIO(text)))
    faults = [f"columns {sorted(set(rows[0]) ^ set(LITCHI))}"] * (set(rows[0]) != set(LITCHI))
    faults += [f"{len(rows)} waypoints"] * (len(rows) > MOST_LITCHI)
    for row in rows:
        for name, rule in LITCHI.items():
            faults += _value_faults(row[name], rule, name)
    return faults
