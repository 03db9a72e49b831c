package main

import (
	"maps"
	"slices"
	"strings"
)

// runtimeConfig is the value of --runtime-config.
type runtimeConfig map[string]string

// Set adds "key=value,key=value". A key without a value means true, except for keys that stand for many versions. See
// builtin.RuntimeConfig.
func (c *runtimeConfig) Set(text string) error {
	if *c == nil {
		*c = runtimeConfig{}
	}
	for pair := range strings.SplitSeq(text, ",") {
		if key, value, _ := strings.Cut(pair, "="); pair != "" {
			(*c)[strings.TrimSpace(key)] = strings.TrimSpace(value)
		}
	}
	return nil
}

// String lists the entries as Set takes them, sorted.
func (c *runtimeConfig) String() string {
	var pairs []string
	for _, key := range slices.Sorted(maps.Keys(*c)) {
		pairs = append(pairs, key+"="+(*c)[key])
	}
	return strings.Join(pairs, ",")
}

// Type names the value in the help, as kube-apiserver's does.
func (c *runtimeConfig) Type() string { return "mapStringString" }

// oldDefinitions is the version that Bowsprit serves by default and kube-apiserver does not.
const oldDefinitions = "apiextensions.k8s.io/v1beta1"

// likeKubernetes returns config with the version switched off that kube-apiserver does not serve by default, unless
// config names it.
func likeKubernetes(config map[string]string) map[string]string {
	out := maps.Clone(config)
	if out == nil {
		out = map[string]string{}
	}
	if _, named := out[oldDefinitions]; !named {
		out[oldDefinitions] = "false"
	}
	return out
}
