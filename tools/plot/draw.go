package main

import (
	"cmp"
	"fmt"
	"html"
	"io"
	"strings"
)

// The measures of a picture, in its units.
const (
	width     = 790
	labels    = 150 // to the left of the bars
	figures   = 240 // to the right of the bars
	barHeight = 16
	barStep   = 20
	workStep  = 26 // for the name of a piece of work
)

// colours are the colours of the servers by name, in light and dark. They are distinguishable for colour-blind people.
// Servers without an entry have the colour of other projects.
var colours = map[string]string{
	"bowsprit": "ours", "bowsprit-counted": "ours",
	"kube-apiserver": "theirs", "kubernetes": "theirs", "Kubernetes and kwok": "theirs",
}

const style = `  <style>
    .ours { fill: #0072b2 } .theirs { fill: #d55e00 } .other { fill: #8a8a8a }
    text { font: 13px system-ui, sans-serif; fill: #1b1b1b } .work { font-weight: 600 }
    .range { stroke: #1b1b1b; stroke-width: 2 }
    @media (prefers-color-scheme: dark) {
      .ours { fill: #56b4e9 } .theirs { fill: #e69f00 } .other { fill: #9a9a9a }
      text { fill: #ececec } .range { stroke: #ececec }
    }
  </style>
`

// draw writes the picture. Bars of one group have one scale; the longest bar fills the available width.
func draw(out io.Writer, title string, bars []bar) error {
	largest := map[string]float64{}
	for _, b := range bars {
		largest[b.group] = max(largest[b.group], b.utmost)
	}
	var body, all strings.Builder
	y, work := 8, ""
	for _, b := range bars {
		if b.work != work {
			work = b.work
			y += workStep
			fmt.Fprintf(&body, "  <text class=\"work\" x=\"0\" y=\"%d\">%s</text>\n", y-8, html.EscapeString(work))
			fmt.Fprintf(&all, "%s: ", work)
		}
		scale := (width - labels - figures) / largest[b.group]
		middle := y + barHeight/2
		fmt.Fprintf(&body, "  <text x=\"0\" y=\"%d\">%s</text>\n", middle+5, html.EscapeString(b.server))
		fmt.Fprintf(&body, "  <rect class=\"%s\" x=\"%d\" y=\"%d\" width=\"%.1f\" height=\"%d\"/>\n",
			cmp.Or(colours[b.server], "other"), labels, y,
			b.median*scale, barHeight)
		fmt.Fprintf(&body, "  <line class=\"range\" x1=\"%.1f\" x2=\"%.1f\" y1=\"%d\" y2=\"%d\"/>\n", labels+b.least*scale,
			labels+b.utmost*scale, middle, middle)
		label := figure(b.median) + " " + b.unit
		if b.least < b.utmost {
			label += fmt.Sprintf(" (%s to %s)", figure(b.least), figure(b.utmost))
		}
		fmt.Fprintf(&body, "  <text x=\"%d\" y=\"%d\">%s</text>\n", width-figures+12, middle+5, label)
		fmt.Fprintf(&all, "%s %s. ", b.server, label)
		y += barStep
	}
	_, err := fmt.Fprintf(out, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" role="img" aria-labelledby="t d">
  <title id="t">%s</title>
  <desc id="d">Medians, the smallest and the largest in brackets. %s</desc>
%s%s</svg>
`, width, y+8, html.EscapeString(title), html.EscapeString(strings.TrimSpace(all.String())), style, body.String())
	return err
}

// figure writes a number with its significant digits.
func figure(f float64) string {
	if f >= 100 {
		return fmt.Sprintf("%.0f", f)
	}
	return fmt.Sprintf("%.3g", f)
}
