package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
)

// made returns the files of the release so far, with their checksums, by name.
func (r *release) made() (names []string, sums map[string]string, err error) {
	files, err := os.ReadDir(r.out)
	if err != nil {
		return nil, nil, err
	}
	sums = map[string]string{}
	for _, f := range files {
		data, err := os.ReadFile(filepath.Join(r.out, f.Name()))
		if err != nil {
			return nil, nil, err
		}
		names, sums[f.Name()] = append(names, f.Name()), fmt.Sprintf("%x", sha256.Sum256(data))
	}
	return names, sums, nil
}

// provenance describes the inputs of the files in the form of in-toto and SLSA 1.0: the commit, the version of Go, the
// command. It is not signed; the publisher of the release signs SHA256SUMS.
func (r *release) provenance() error {
	if err := r.formula(); err != nil {
		return err
	}
	names, sums, err := r.made()
	if err != nil {
		return err
	}
	var subjects []any
	for _, name := range names {
		subjects = append(subjects, map[string]any{"name": name, "digest": map[string]string{"sha256": sums[name]}})
	}
	modules, err := os.ReadFile(filepath.Join(r.root, "go.sum"))
	if err != nil {
		return err
	}
	var platforms []string
	for _, t := range r.targets {
		platforms = append(platforms, t.String())
	}
	source := map[string]any{"uri": "git+" + homepage, "digest": map[string]string{"gitCommit": r.commit}}
	statement, err := json.MarshalIndent(map[string]any{
		"_type": "https://in-toto.io/Statement/v1", "subject": subjects,
		"predicateType": "https://slsa.dev/provenance/v1",
		"predicate": map[string]any{
			"buildDefinition": map[string]any{
				"buildType":          homepage + "/blob/main/docs/packages.md#make-a-release",
				"externalParameters": map[string]any{"version": r.version, "targets": platforms},
				"internalParameters": map[string]any{"go": runtime.Version()},
				"resolvedDependencies": []any{source, map[string]any{"uri": "go.sum",
					"digest": map[string]string{"sha256": fmt.Sprintf("%x", sha256.Sum256(modules))}}},
			},
			"runDetails": map[string]any{"builder": map[string]string{"id": homepage + "/blob/main/Makefile"}},
		},
	}, "", " ")
	if err != nil {
		return err
	}
	return r.write("provenance.intoto.json", append(statement, '\n'))
}

// sums writes the checksums of all other files, as sha256sum --check reads them.
func (r *release) sums() error {
	names, sums, err := r.made()
	if err != nil {
		return err
	}
	var b bytes.Buffer
	for _, name := range names {
		fmt.Fprintf(&b, "%s  %s\n", sums[name], name)
	}
	return r.write("SHA256SUMS", b.Bytes())
}

// formula makes the file for Homebrew, if an archive exists for each of its platforms.
func (r *release) formula() error {
	_, sums, err := r.made()
	if err != nil {
		return err
	}
	text, err := os.ReadFile(filepath.Join(r.root, "packaging", "homebrew", "bowsprit.rb.in"))
	if err != nil {
		return err
	}
	number := strings.TrimPrefix(r.version, "v")
	filled := strings.NewReplacer("@VERSION@", number, "@TAG@", r.version).Replace(string(text))
	for _, t := range []target{{"darwin", "arm64"}, {"darwin", "amd64"}, {"linux", "arm64"}, {"linux", "amd64"}} {
		sum := sums["bowsprit_"+number+"_"+t.os+"_"+t.arch+".tar.gz"]
		if sum == "" {
			fmt.Printf("%10s  bowsprit.rb: left out, there is no archive for %s\n", "-", t)
			return nil
		}
		filled = strings.ReplaceAll(filled, "@SHA256_"+strings.ToUpper(t.os+"_"+t.arch)+"@", sum)
	}
	return r.write("bowsprit.rb", []byte(filled))
}
