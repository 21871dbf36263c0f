// Keeps the progress of a replay fresh. The page works without it.

import { followProgress } from "../../frontend/js/progress.js";

followProgress();
