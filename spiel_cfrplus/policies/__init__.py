"""Policies of compiled games: strategy profiles, import and export, evaluation, locking."""

from typing import TYPE_CHECKING

from spiel_cfrplus._utils.lazy_modules import modules_on_first_use

if TYPE_CHECKING:
    from spiel_cfrplus.policies import evaluation as evaluation
    from spiel_cfrplus.policies import files as files
    from spiel_cfrplus.policies import folders as folders
    from spiel_cfrplus.policies import joint_play as joint_play
    from spiel_cfrplus.policies import locking as locking
    from spiel_cfrplus.policies import profile as profile
    from spiel_cfrplus.policies import reading as reading
    from spiel_cfrplus.policies import restriction as restriction
    from spiel_cfrplus.policies import text_files as text_files
else:
    __getattr__, __dir__ = modules_on_first_use(__name__, __path__)
