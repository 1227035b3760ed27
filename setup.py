"""Package metadata of spiel_cfrplus."""

import pathlib
import re

import setuptools

HERE = pathlib.Path(__file__).parent
VERSION = re.search(r'__version__ = "(.+)"', (HERE / "spiel_cfrplus" / "__init__.py").read_text()).group(1)

setuptools.setup(
    name="spiel_cfrplus",
    version=VERSION,
    description="CFR and CFR+ for OpenSpiel games, hundreds of times faster, exactly as the papers define them",
    long_description=(HERE / "README.md").read_text(),
    long_description_content_type="text/markdown",
    license="Apache-2.0",
    python_requires=">=3.11",
    # An editable install is then one line in a .pth file. Otherwise it is a finder, which is asked last, and a folder
    # `spiel_cfrplus` left behind in site-packages, empty but for bytecode, is imported in its place.
    package_dir={"": "."},
    packages=setuptools.find_packages(include=["spiel_cfrplus", "spiel_cfrplus.*"]),
    package_data={"spiel_cfrplus": ["py.typed"]},  # type checkers read the annotations of packages with this file
    install_requires=[
        "absl-py>=1.0",
        "numba>=0.61",
        "numpy>=1.26",
        "open_spiel>=2.0",
        "platformdirs>=4.0",
        "psutil>=5.9",
        "tqdm>=4.60",
    ],
    extras_require={
        "plot": ["matplotlib>=3.8"],
        "test": ["hypothesis>=6", "matplotlib>=3.8", "mypy>=1.15", "pytest>=8", "pytest-xdist>=3.5", "scipy>=1.10"],
    },
    entry_points={"console_scripts": ["spiel-cfrplus=spiel_cfrplus.cli.entry_point:main"]},
)
