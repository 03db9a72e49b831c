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
	defaults map[string]any  // the supported gates, with the variable of each: *bool, **bool, or func(bool)
	other    *[]string       // receives the settings of kube-apiserver's other gates; nil refuses them
	logged   map[string]bool // the values of gates that a function sets
}

// names lists the supported gates.
func (g featureGates) names() string { return strings.Join(slices.Sorted(maps.Keys(g.defaults)), ", ") }

// Set takes "Name=true,Other=false". The names may follow kube-apiserver's name for itself, as in "kube:Name=true".
func (g featureGates) Set(text string) error {
	for pair := range strings.SplitSeq(text, ",") {
		pair = strings.TrimPrefix(strings.TrimSpace(pair), "kube:")
		name, value, _ := strings.Cut(pair, "=")
		if name == "" {
			continue
		}
		gate, known := g.defaults[name]
		if !known && g.other == nil {
			return fmt.Errorf("unrecognized feature gate: %s (known: %s)", name, g.names())
		}
		on, err := strconv.ParseBool(value)
		if err != nil {
			return fmt.Errorf("invalid value of %s: use true or false", name)
		}
		switch gate := gate.(type) {
		case *bool:
			*gate = on
		case **bool:
			*gate = &on
		case func(bool):
			gate(on)
			g.logged[name] = on
		default:
			*g.other = append(*g.other, pair)
		}
	}
	return nil
}

// String lists the gates with other values than their defaults, in the format of Set.
func (g featureGates) String() string {
	var pairs []string
	for _, name := range slices.Sorted(maps.Keys(g.defaults)) {
		switch gate := g.defaults[name].(type) {
		case *bool:
			if *gate {
				pairs = append(pairs, name+"=true")
			}
		case **bool:
			if *gate != nil && !**gate {
				pairs = append(pairs, name+"=false")
			}
		case func(bool):
			if on, ok := g.logged[name]; ok {
				pairs = append(pairs, name+"="+strconv.FormatBool(on))
			}
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
