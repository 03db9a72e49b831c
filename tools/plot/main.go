// Command plot draws what a benchmark has printed as an SVG: for each piece of work a bar for each server, the median,
// with a line from the smallest to the largest. It reads the output of `make bench-aggregation` and writes the picture:
//
//	plot -title "Aggregated requests" < bench.txt > picture.svg
//
// The picture needs no script and no font, is readable in dark and light, and has all its figures as text.
package main

import (
	"bufio"
	"flag"
	"fmt"
	"io"
	"os"
	"regexp"
	"strconv"
)

// bar is one line of the benchmark.
type bar struct {
	work, group, server   string
	median, least, utmost float64
}

// line is what TestAggregationCost of test/e2e prints for a piece of work and a server.
var line = regexp.MustCompile(`: ((\w+), HTTP/\d) +(\S+) +(\d+) us of CPU each, (\d+) to (\d+)$`)

func main() {
	title := flag.String("title", "", "what the picture shows")
	flag.Parse()
	bars, err := read(os.Stdin)
	if err == nil {
		err = draw(os.Stdout, *title, "µs of CPU each", bars)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "plot: "+err.Error())
		os.Exit(1)
	}
}

// read returns the lines of a benchmark that are figures, in their order.
func read(in io.Reader) (bars []bar, err error) {
	lines := bufio.NewScanner(in)
	for lines.Scan() {
		m := line.FindStringSubmatch(lines.Text())
		if m == nil {
			continue
		}
		b := bar{work: m[1], group: m[2], server: m[3]}
		for i, to := range []*float64{&b.median, &b.least, &b.utmost} {
			if *to, err = strconv.ParseFloat(m[4+i], 64); err != nil {
				return nil, err
			}
		}
		bars = append(bars, b)
	}
	if len(bars) == 0 {
		return nil, fmt.Errorf("there are no figures in the input")
	}
	return bars, lines.Err()
}
