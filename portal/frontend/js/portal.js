// Scripts of every page: htmx and what the frame and the shared parts do.

import "htmx.org";
import { offerPalette } from "../../pages/search/palette.js";
import { offerFolds } from "./folds.js";
import { offerKeys } from "./keys.js";
import { offerFilters } from "./filter_sheet.js";
import { offerMenus } from "./menus.js";
import { offerQuestions } from "./questions.js";
import { offerSide } from "./side.js";
import { showCurrentTab } from "./tabs.js";
import { offerThemes } from "./themes.js";
import { offerTips } from "./tips.js";
import { offerToasts } from "./toasts.js";
import { offerWaits } from "./waits.js";
import { offerZones } from "./zones.js";

offerThemes();
showCurrentTab();
offerMenus();
offerFolds();
offerSide();
offerPalette();
offerQuestions();
offerToasts();
offerFilters();
offerZones();
offerTips();
offerWaits();
offerKeys();
