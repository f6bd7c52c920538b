"""Field searches: own imagery in, flight files out, and the live searcher.

| module         | topic                                                                        |
|----------------|------------------------------------------------------------------------------|
| `searcher`     | the live searcher: photos in, the next waypoint out; `session` has its agent |
| `plan`         | the plan of a search and the searcher that it makes                          |
| `team`         | several vehicles with one belief, and targets that move over a `terrain`     |
| `simulation`   | a search over an orthoimage                                                  |
| `priors`       | what is known before take-off as a prior over the cells; `map_prior`         |
| `photos`       | photos become glimpses of a cell; `detection` has the measured POD           |
| `outputs`      | the files of a search: flight files, `report`, belief as GeoTIFF             |
| `flight`       | camera footprint and flight files, `formats` has more of them                |
| `patterns`     | search patterns as fixed paths; `sweep`, `tours` and `filmed` plan by the map |
| `server`       | searches over HTTP: `service`, `settings`, `messages`, `refusals`, `intake`, `vehicles` |
| `live`         | the map in the browser: `feed`, `views`, `images`, `orthophotos`             |
| `store`        | the file of the server's searches; `recovery` reads a damaged one            |
| `exif`         | position, height and gimbal of drone photos; `ranking` searches a folder     |
| `coverage`     | what an actual flight has seen, by its GPX track, its log or its photos      |
| `fence`        | where a vehicle may fly; `routes` and `endurance` make flights of cells      |
| `units`        | lengths, durations, speeds and positions as text                             |

This module exports the parts that need no extra packages. `plan`, `outputs` and `report` need the extra `field`; the
server needs the extras `field` and `web`.
"""

from airloc.missions.filmed import plan_filmed_flights
from airloc.missions.flight import Camera, Flight, Waypoint
from airloc.missions.photos import Goal, PhotoPose, View, centre_crop, crop_to_cell, crop_to_view, make_goal, read_photo
from airloc.missions.searcher import Advice, Candidate, Find, Glimpse, Searcher, UnusablePhotoError
from airloc.missions.sweep import plan_sweep

__all__ = [
    "Advice",
    "Camera",
    "Candidate",
    "Find",
    "Flight",
    "Glimpse",
    "Goal",
    "PhotoPose",
    "Searcher",
    "UnusablePhotoError",
    "View",
    "Waypoint",
    "centre_crop",
    "crop_to_cell",
    "crop_to_view",
    "make_goal",
    "plan_filmed_flights",
    "plan_sweep",
    "read_photo",
]
