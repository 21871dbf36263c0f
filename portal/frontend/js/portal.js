// Scripts of every page: htmx, the theme button, the command palette, questions before writes.

import "htmx.org";
import { offerThemes } from "./themes.js";
import { offerPalette } from "../../pages/search/palette.js";
import { offerQuestions } from "./questions.js";

offerThemes();
offerPalette();
offerQuestions();
