package main

import (
	"cmp"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"time"
)

// least is the CPU time from which on a package of tests has its own line.
const least = 5 * time.Second

// report prints the CPU time of each kind of process, then of the packages' tests, the largest first.
func report(out io.Writer, all []process) {
	kinds, tests := map[string]*sum{}, map[string]*sum{}
	total := &sum{}
	for _, p := range all {
		total.add(p)
		at(kinds, label(p.Kind, p.Race)).add(p)
		if p.Kind == "test" {
			at(tests, label(relative(p.Name), p.Race)).add(p)
		}
	}
	fmt.Fprintf(out, "%8s %8s %6s\n", "CPU s", "wall s", "number")
	lines(out, kinds, 0)
	fmt.Fprintf(out, "%s all\n\n%s of CPU and more:\n", total, least)
	lines(out, tests, least)
}

// A sum adds up processes.
type sum struct {
	cpu, wall time.Duration
	n         int
}

func (s *sum) add(p process) {
	s.cpu, s.wall, s.n = s.cpu+p.CPU, s.wall+p.Wall, s.n+1
}

func (s *sum) String() string {
	return fmt.Sprintf("%8.1f %8.1f %6d", s.cpu.Seconds(), s.wall.Seconds(), s.n)
}

func at(sums map[string]*sum, name string) *sum {
	if sums[name] == nil {
		sums[name] = &sum{}
	}
	return sums[name]
}

// lines prints the sums from least on; it adds up the others in one line.
func lines(out io.Writer, sums map[string]*sum, least time.Duration) {
	var names []string
	rest := &sum{}
	for name, s := range sums {
		if s.cpu >= least {
			names = append(names, name)
			continue
		}
		rest.cpu, rest.wall, rest.n = rest.cpu+s.cpu, rest.wall+s.wall, rest.n+s.n
	}
	slices.SortFunc(names, func(a, b string) int {
		return cmp.Or(cmp.Compare(sums[b].cpu, sums[a].cpu), cmp.Compare(a, b))
	})
	for _, name := range names {
		fmt.Fprintf(out, "%s %s\n", sums[name], name)
	}
	if rest.n > 0 {
		fmt.Fprintf(out, "%s others\n", rest)
	}
}

func label(name string, race bool) string {
	if race {
		return name + " (race)"
	}
	return name
}

// relative shortens a folder to its path below the working directory.
func relative(dir string) string {
	here, err := os.Getwd()
	if err != nil {
		return dir
	}
	short, err := filepath.Rel(here, dir)
	if err != nil {
		return dir
	}
	return short
}
