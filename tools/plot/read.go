package main

import (
	"bufio"
	"errors"
	"io"
	"regexp"
	"slices"
	"strconv"
	"time"
)

// bar is the result of one server or library for a piece of work.
type bar struct {
	work, group, server   string // bars of one group have one scale
	median, least, utmost float64
	unit                  string
}

// These expressions match the lines of results, by the program that prints them.
var (
	// TestAggregationCost of test/e2e: medians, with the smallest and the largest.
	cost = regexp.MustCompile(`: ((\w+), HTTP/\d) +(\S+) +(\d+) us of CPU each, (\d+) to (\d+)$`)
	// TestWorkloadsScale of test/e2e: one run.
	scale = regexp.MustCompile(`: ([^:]+): one pod .*; (\d+ pods on \d+ nodes) after (\S+), .*; (\d+) MB `)
	// Go's benchmarks, a line for each of several runs.
	bench = regexp.MustCompile(`^Benchmark(\S+)/by=(\S+?)(?:-\d+)?\s+\d+\s+([\d.]+) ns/op`)
)

// read returns the bars of benchmarks' output, in the order in which each first appears.
func read(in io.Reader) (bars []bar, err error) {
	runs := map[bar][]float64{} // by bars without figures
	lines := bufio.NewScanner(in)
	for lines.Scan() {
		text := lines.Text()
		switch m := cost.FindStringSubmatch(text); {
		case m != nil:
			f := numbers(m[4:])
			bars = append(bars, bar{m[1], m[2], m[3], f[0], f[1], f[2], "µs of CPU"})
		default:
			if m = scale.FindStringSubmatch(text); m != nil {
				took, err := time.ParseDuration(m[3])
				if err != nil {
					return nil, err
				}
				s, mb := took.Seconds(), numbers(m[4:])[0]
				all, memory := m[2]+" available", m[2]+", memory"
				bars = append(bars, bar{all, all, m[1], s, s, s, "s"}, bar{memory, memory, m[1], mb, mb, mb, "MB"})
			} else if m = bench.FindStringSubmatch(text); m != nil {
				b := bar{work: m[1], group: m[1], server: m[2], unit: "µs"}
				if runs[b] == nil {
					bars = append(bars, b)
				}
				runs[b] = append(runs[b], numbers(m[3:])[0]/1000)
			}
		}
	}
	if len(bars) == 0 {
		return nil, errors.New("there are no figures in the input")
	}
	for i, b := range bars {
		if all := runs[b]; all != nil {
			slices.Sort(all)
			bars[i].median, bars[i].least, bars[i].utmost = all[len(all)/2], all[0], all[len(all)-1]
		}
	}
	slices.SortStableFunc(bars, func(a, b bar) int { return first(bars, a.work) - first(bars, b.work) })
	return bars, lines.Err()
}

// first returns the index at which a piece of work first appears. Its bars are adjacent in the picture.
func first(bars []bar, work string) int {
	return slices.IndexFunc(bars, func(b bar) bool { return b.work == work })
}

// numbers returns figures that an expression has matched.
func numbers(texts []string) []float64 {
	out := make([]float64, len(texts))
	for i, text := range texts {
		out[i], _ = strconv.ParseFloat(text, 64) // the expression admits only numbers
	}
	return out
}
