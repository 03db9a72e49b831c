// Command plot draws the output of benchmarks as an SVG. For each piece of work it has a bar for each server or
// library: the median, with a line from the smallest to the largest. It reads the output of `make bench-aggregation`,
// of `make bench-workloads`, or of Go benchmarks with by=NAME as their last part, and writes the picture:
//
//	plot -title "Aggregated requests" < bench.txt > picture.svg
//
// The picture needs no script and no font, is readable in dark and light, and has all its figures as text.
package main

import (
	"flag"
	"fmt"
	"os"
)

func main() {
	title := flag.String("title", "", "title of the picture")
	flag.Parse()
	bars, err := read(os.Stdin)
	if err == nil {
		err = draw(os.Stdout, *title, bars)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "plot: "+err.Error())
		os.Exit(1)
	}
}
