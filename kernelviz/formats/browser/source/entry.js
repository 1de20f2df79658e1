// The traces that kernelviz/plots draws. Scatter is part of the core. kernelviz/formats/browser/bundle.py lists them too.
import Plotly from "plotly.js/lib/core";
import bar from "plotly.js/lib/bar";
import heatmap from "plotly.js/lib/heatmap";

Plotly.register([bar, heatmap]);
globalThis.Plotly = Plotly;
