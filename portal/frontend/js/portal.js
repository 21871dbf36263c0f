// What every page has: parts that load themselves, the theme button, the palette, questions.

import "htmx.org";
import { offerThemes } from "./themes.js";
import { offerPalette } from "../../pages/search/palette.js";
import { offerQuestions } from "./questions.js";

offerThemes();
offerPalette();
offerQuestions();
