package main

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// featureGates is the value of --feature-gates: the gates that mean something here, and where each is kept.
type featureGates map[string]*bool

// Set takes "Name=true,Other=false".
func (g featureGates) Set(text string) error {
	for pair := range strings.SplitSeq(text, ",") {
		name, value, _ := strings.Cut(strings.TrimSpace(pair), "=")
		if name == "" {
			continue
		}
		gate := g[name]
		if gate == nil {
			return fmt.Errorf("unrecognized feature gate: %s (known: %s)", name, strings.Join(slices.Sorted(maps.Keys(g)), ", "))
		}
		on, err := strconv.ParseBool(value)
		if err != nil {
			return fmt.Errorf("invalid value of %s: use true or false", name)
		}
		*gate = on
	}
	return nil
}

// String lists the gates as Set takes them.
func (g featureGates) String() string {
	var pairs []string
	for _, name := range slices.Sorted(maps.Keys(g)) {
		if *g[name] {
			pairs = append(pairs, name+"=true")
		}
	}
	return strings.Join(pairs, ",")
}

// Type names the value in the help.
func (featureGates) Type() string { return "gates" }
