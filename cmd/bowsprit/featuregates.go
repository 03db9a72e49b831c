package main

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// featureGates is the value of --feature-gates.
type featureGates struct {
	known map[string]*bool // the gates that mean something here, and where each is kept
	other *[]string        // what is said of kube-apiserver's other gates; nil refuses it
}

// names lists the gates that mean something here.
func (g featureGates) names() string { return strings.Join(slices.Sorted(maps.Keys(g.known)), ", ") }

// Set takes "Name=true,Other=false". The names may follow kube-apiserver's name for itself, as in "kube:Name=true".
func (g featureGates) Set(text string) error {
	for pair := range strings.SplitSeq(text, ",") {
		pair = strings.TrimPrefix(strings.TrimSpace(pair), "kube:")
		name, value, _ := strings.Cut(pair, "=")
		if name == "" {
			continue
		}
		gate := g.known[name]
		if gate == nil && g.other == nil {
			return fmt.Errorf("unrecognized feature gate: %s (known: %s)", name, g.names())
		}
		on, err := strconv.ParseBool(value)
		if err != nil {
			return fmt.Errorf("invalid value of %s: use true or false", name)
		}
		if gate != nil {
			*gate = on
		} else {
			*g.other = append(*g.other, pair)
		}
	}
	return nil
}

// String lists the gates as Set takes them.
func (g featureGates) String() string {
	var pairs []string
	for _, name := range slices.Sorted(maps.Keys(g.known)) {
		if *g.known[name] {
			pairs = append(pairs, name+"=true")
		}
	}
	return strings.Join(pairs, ",")
}

// Type names the value in the help.
func (g featureGates) Type() string {
	if g.other != nil {
		return "colonSeparatedMultimapStringString" // kube-apiserver's word
	}
	return "gates"
}
