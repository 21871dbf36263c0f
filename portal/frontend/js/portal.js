// What every page has: parts that load themselves, the theme button, the palette.

import "htmx.org";
import { offerThemes } from "./themes.js";
import { offerPalette } from "./palette.js";

offerThemes();
offerPalette();
