"""Training: one loop per file, and the run folders that all of them write.

| module             | topic                                                       |
|--------------------|-------------------------------------------------------------|
| `pipeline`         | AiRLoc from images: all stages in one folder, presets       |
| `segmenter`        | the segmentation unit                                       |
| `embedder`         | the patch embedder                                          |
| `reinforce`        | the policies, by REINFORCE                                  |
| `relation`         | the relation network and the belief agent                   |
| `relation_batches` | training batches of the relation network                    |
| `relation_losses`  | losses of the relation network and the text network         |
| `consistency`      | training batches of a relation network with a teacher       |
| `text`             | the text network, for goals in words                        |
| `text_data`        | areas and images with captions                              |
| `locator`          | the network that finds goals in photos                      |
| `locator_batches`  | training batches of the locator                             |
| `data`             | images of datasets, procedural areas, pairs, folds          |
| `atlas`            | images on the device at several scales, and crops           |
| `augment`          | symmetries, colour jitter, temporal augmentation            |
| `features`         | outputs of the frozen units, tabulated for policy training  |
| `photos`           | glimpses and goals as photos of their own                   |
| `loop`             | updates, validations and saves; the best weights            |
| `learner`          | network, optimizer and learning rate; CUDA graphs           |
| `runs`             | run folders: settings, metrics, state, lock                 |
"""

from airloc.training.data import DataConfig, PairConfig
from airloc.training.pipeline import PRESETS, AirlocConfig, train_stages
from airloc.training.relation import RelationConfig, train_belief
from airloc.training.relation_batches import GoalAugmentation
from airloc.training.runs import Run

__all__ = [
    "PRESETS",
    "AirlocConfig",
    "DataConfig",
    "GoalAugmentation",
    "PairConfig",
    "RelationConfig",
    "Run",
    "train_belief",
    "train_stages",
]
