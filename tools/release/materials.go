package main

import (
	"debug/buildinfo"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"runtime/debug"
	"strings"
	"time"
)

// component is a module, in the words of CycloneDX 1.6.
type component struct {
	Type    string `json:"type"`
	Ref     string `json:"bom-ref"`
	Name    string `json:"name"`
	Version string `json:"version"`
	PURL    string `json:"purl"`
	// Properties has Go's own sum of the module, over the names and contents of its files (h1).
	Properties []property `json:"properties,omitempty"`
}

type property struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// materials writes a bill of materials: the modules in the program, from the program's own build information.
func (r *release) materials(t target, binary string) error {
	info, err := buildinfo.ReadFile(binary)
	if err != nil {
		return err
	}
	main := moduleOf(&debug.Module{Path: info.Main.Path, Version: r.version})
	main.Type = "application"
	parts := []component{{Type: "library", Ref: "pkg:golang/std@" + info.GoVersion, Name: "std",
		Version: strings.TrimPrefix(info.GoVersion, "go"), PURL: "pkg:golang/std@" + info.GoVersion}}
	for _, m := range info.Deps {
		if m.Replace != nil {
			m = m.Replace
		}
		parts = append(parts, moduleOf(m))
	}
	bom, err := json.MarshalIndent(map[string]any{
		"bomFormat": "CycloneDX", "specVersion": "1.6", "version": 1,
		"metadata": map[string]any{"timestamp": r.time.Format(time.RFC3339), "component": main,
			"properties": []property{{"bowsprit:platform", t.String()}, {"bowsprit:commit", r.commit}}},
		"components": parts,
	}, "", " ")
	if err != nil {
		return err
	}
	name := fmt.Sprintf("bowsprit_%s_%s_%s.cdx.json", strings.TrimPrefix(r.version, "v"), t.os, t.arch)
	return r.write(name, append(bom, '\n'))
}

func moduleOf(m *debug.Module) component {
	url := "pkg:golang/" + m.Path + "@" + m.Version
	c := component{Type: "library", Ref: url, Name: m.Path, Version: m.Version, PURL: url}
	if sum, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(m.Sum, "h1:")); err == nil && m.Sum != "" {
		c.Properties = []property{{"go:sum:h1", hex.EncodeToString(sum)}}
	}
	return c
}
