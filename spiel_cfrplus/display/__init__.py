"""Pages and pictures of strategies and games."""

from typing import TYPE_CHECKING

from spiel_cfrplus._utils.lazy_modules import modules_on_first_use

if TYPE_CHECKING:
    from spiel_cfrplus.display import drawings as drawings
    from spiel_cfrplus.display import explorer as explorer
    from spiel_cfrplus.display import pages as pages
    from spiel_cfrplus.display import report as report
    from spiel_cfrplus.display import situations as situations
else:
    __getattr__, __dir__ = modules_on_first_use(__name__, __path__)
