"""Two views of a scene: homographies and fundamental matrices from matched points.

`pairs.py` says what a relation is, `homographies.py` and `fundamental.py` are two; `noise.py` is
the law of errors in pixels, `search.py` finds the likeliest matrix, `evidence.py` says how sure it
is, and `form.py` checks what users pass.
"""

from perpend.correspondences.form import Relation, fundamental_matrix, homography

__all__ = ["Relation", "fundamental_matrix", "homography"]
