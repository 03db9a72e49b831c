package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// readResources returns the served resources of the discovery documents: "apps/v1 deployments/scale" with its verbs.
func readResources(t tree) (items, error) {
	all := items{}
	files, err := filepath.Glob(filepath.Join(t["kubernetes"], "api/discovery/*.json"))
	if err != nil {
		return nil, err
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		var list struct {
			GroupVersion string `json:"groupVersion"`
			Resources    []struct {
				Name  string   `json:"name"`
				Kind  string   `json:"kind"`
				Verbs []string `json:"verbs"`
			} `json:"resources"`
		}
		if json.Unmarshal(data, &list) != nil {
			continue // the list of groups
		}
		group, version, ok := strings.Cut(list.GroupVersion, "/")
		if !ok {
			group, version = "core", group
		}
		for _, r := range list.Resources {
			slices.Sort(r.Verbs)
			first, _, _ := strings.Cut(group, ".")
			all[first+"/"+version+" "+r.Name] = r.Kind + ": " + strings.Join(r.Verbs, " ")
		}
	}
	return all, nil
}

// roleName matches the name in the metadata of a list's item.
var roleName = regexp.MustCompile(`(?m)^    name: (.*)$`)

// readRoles returns the default roles and bindings: "cluster-roles.yaml admin".
func readRoles(t tree) (items, error) {
	all := items{}
	const folder = "plugin/pkg/auth/authorizer/rbac/bootstrappolicy/testdata/*.yaml"
	files, err := filepath.Glob(filepath.Join(t["kubernetes"], folder))
	if err != nil {
		return nil, err
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		_, text, _ := strings.Cut(string(data), "\nitems:\n")
		for _, item := range strings.Split("\n"+text, "\n- ") {
			if name := roleName.FindStringSubmatch(item); name != nil {
				all[filepath.Base(file)+" "+name[1]] = hash(item)
			}
		}
	}
	return all, nil
}

// readTests returns the integration tests: "apiserver/cel TestStaticPolicyComprehensive".
func readTests(t tree) (items, error) {
	all := items{}
	test := func(path string) bool { return strings.HasSuffix(path, "_test.go") }
	err := goFiles(filepath.Join(t["kubernetes"], "test/integration"), test, func(s source) error {
		s.functions(func(name, text string) {
			if strings.HasPrefix(name, "Test") && name != "TestMain" {
				all[s.folder+" "+name] = ""
			}
		})
		return nil
	})
	return all, err
}

// codeName matches the name of a conformance test, which YAML may fold, and tag the labels in it, which move.
var (
	codeName = regexp.MustCompile(`(?m)^  codename: ((?:.|\n    )*)$`)
	tag      = regexp.MustCompile(`\[[^\]]*\]`)
)

// readConformance returns the conformance tests by their names without labels.
func readConformance(t tree) (items, error) {
	all := items{}
	data, err := os.ReadFile(filepath.Join(t["kubernetes"], "test/conformance/testdata/conformance.yaml"))
	if os.IsNotExist(err) {
		return all, nil
	}
	for _, m := range codeName.FindAllStringSubmatch(string(data), -1) {
		name := tag.ReplaceAllString(strings.Trim(m[1], `'"`), "")
		all[strings.Join(strings.Fields(name), " ")] = ""
	}
	return all, err
}
