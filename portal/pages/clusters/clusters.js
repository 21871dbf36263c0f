// Keeps the progress of a run fresh, the queue of drift, and the selection of the list of clusters.
// The pages work without it.

import { followProgress } from "../../frontend/js/progress.js";
import { offerSelection } from "../../frontend/js/selection.js";
import { offerDrift } from "./drift/drift.js";

followProgress();
offerDrift();
offerSelection();
