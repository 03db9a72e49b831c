package main

import (
	"slices"
	"strings"
)

// subjects are the subjects of the report, in its order.
func subjects(o *ours) []subject {
	group := func(name string) string { return o.kinds(firstOf(name)) }
	at := func(path string) func(string) string { return func(string) string { return o.existing(path) } }
	validated := func(name string) []string {
		function := last(name)[0]
		kind := strings.TrimPrefix(strings.TrimPrefix(strings.TrimPrefix(function, "Validate"), "validate"), "_")
		return []string{function, kind, strings.TrimSuffix(kind, "Update"), strings.TrimSuffix(kind, "Spec")}
	}
	return []subject{
		{title: "Resources", read: readResources, words: last, folder: group},
		{title: "Types and fields", read: readTypes, words: last, folder: group, below: "internal/kinds/"},
		{title: "Feature gates", read: readGates, words: last, folder: at("internal/kinds/features.txt")},
		{title: "Validation functions", read: readValidation, words: validated, folder: group,
			below: "internal/kinds/", hidden: true},
		{title: "Declarative validation", read: readDeclarative, words: validated, folder: group,
			below: "internal/kinds/", hidden: true},
		{title: "Defaults", read: readDefaults, words: func(name string) []string {
			return []string{strings.TrimPrefix(last(name)[0], "SetDefaults_")}
		}, folder: group, below: "internal/kinds/", hidden: true},
		{title: "Roles", read: readRoles, words: func(string) []string { return nil },
			folder: at("internal/feature/authorize/bootstrap/policy.jsonl"), hidden: true},
		{title: "Admission plugins", read: readPlugins, words: last,
			folder: at("internal/feature/plugins"), hidden: true},
		{title: "Flags", read: readFlags, words: func(name string) []string { return []string{name[2:]} },
			folder: at("cmd/bowsprit/kube_apiserver_flags.tsv"), hidden: true},
		{title: "Printer columns", read: readColumns, words: func(name string) []string {
			return []string{strings.ToUpper(name[:1]) + firstOf(name)[1:]}
		}, folder: at("internal/kinds"), below: "internal/kinds/"},
		{title: "Integration tests", read: readTests, words: last, folder: func(name string) string {
			baseline := "test/conformance/baseline/" + strings.ReplaceAll(firstWord(name), "/", "-") + ".txt"
			if o.existing(baseline) != "" {
				return baseline
			}
			return "docs/conformance.md"
		}},
		{title: "Conformance tests", read: readConformance, words: func(string) []string { return nil },
			folder: at("test/conformance/baseline/e2e.txt")},
	}
}

// firstOf returns the group of a name such as "core/v1 PodSpec.hostUsers", or the first word before a colon.
func firstOf(name string) string {
	group, _, _ := strings.Cut(firstWord(name), "/")
	return strings.TrimSuffix(group, ":")
}

func firstWord(name string) string {
	first, _, _ := strings.Cut(name, " ")
	return first
}

// last returns the last two words of a name after its group and version, the last one first: "hostUsers" and "PodSpec"
// of "core/v1 PodSpec.hostUsers".
func last(name string) []string {
	_, rest, ok := strings.Cut(name, " ")
	if !ok {
		rest = name
	}
	words := strings.FieldsFunc(rest, func(r rune) bool { return strings.ContainsRune(" ./:=", r) })
	slices.Reverse(words)
	return words[:min(2, len(words))]
}
