"""Labelled images on disk: where they are, which part of a data set each belongs to, and reading them without torch."""

from msdnet.files.cifar import CIFAR, SIDE, CifarLayout, cifar_classes, find_cifar, read_cifar
from msdnet.files.folder import (
    DividedFolder,
    LabelledFile,
    composed,
    digest,
    divide,
    find_classes,
    find_images,
    fingerprint_of_files,
    some_names,
)
from msdnet.files.labelled import FOLDER, Labelled, check_labels, class_names, dataset_at, open_labelled
from msdnet.files.parts import Part, fingerprint, hold_out, hold_out_by_class, in_words
from msdnet.files.root import data_root, download_folder
from msdnet.files.walk import images_below

__all__ = [
    "CIFAR",
    "FOLDER",
    "SIDE",
    "CifarLayout",
    "DividedFolder",
    "Labelled",
    "LabelledFile",
    "Part",
    "check_labels",
    "cifar_classes",
    "class_names",
    "composed",
    "data_root",
    "dataset_at",
    "digest",
    "divide",
    "download_folder",
    "find_cifar",
    "find_classes",
    "find_images",
    "fingerprint",
    "fingerprint_of_files",
    "hold_out",
    "hold_out_by_class",
    "images_below",
    "in_words",
    "open_labelled",
    "read_cifar",
    "some_names",
]
