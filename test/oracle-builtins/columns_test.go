package oraclebuiltins

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	"k8s.io/kubernetes/pkg/printers"
	printersinternal "k8s.io/kubernetes/pkg/printers/internalversion"

	"github.com/bowsprit/bowsprit/internal/api/catalog"
	"github.com/bowsprit/bowsprit/internal/kinds"
)

var update = flag.Bool("update", false, "rewrite the columns in the texts of internal/kinds")

// TestColumns prints random objects of every kind with kube's printers and with ours. With -update it writes the
// columns that kube's have into the texts of the kinds.
func TestColumns(t *testing.T) {
	generator := printers.NewTableGenerator().With(printersinternal.AddHandlers)
	texts := readTexts(t)
	for _, r := range kinds.Resources() {
		if r.Group == "apiextensions.k8s.io" || r.Secondary || r.Kind == "CSIStorageCapacity" {
			continue // kube-apiserver does not use the printer that it has for CSIStorageCapacity
		}
		for _, v := range r.Versions {
			t.Run(r.Kind+" "+v.Name, func(t *testing.T) {
				compared := false
				for seed := range int64(60) {
					doc := randomObject(t, r, v, seed)
					if bytes.Contains(doc, []byte(`"podGroupTemplateRef":{"workload":null}`)) {
						continue // Kubernetes' printer panics for it
					}
					table := theirTable(t, generator, r, v, doc)
					if table == nil {
						return // kinds without a printer show name and creation
					}
					if !compared && v == r.Storage {
						texts.compare(t, r.Kind, table)
						compared = true
					}
					compareTable(t, r, v, seed, table)
					if t.Failed() {
						return
					}
				}
			})
		}
	}
	if *update {
		texts.write(t)
	}
}

func theirTable(
	t *testing.T, g printers.TableGenerator, r *catalog.Resource, v *catalog.Version, doc []byte,
) *metav1.Table {
	t.Helper()
	in, err := legacyscheme.Scheme.New(schema.GroupVersionKind{Group: r.Group, Version: v.Name, Kind: r.Kind})
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(doc, in); err != nil {
		t.Fatal(err)
	}
	legacyscheme.Scheme.Default(in)
	hub, err := legacyscheme.Scheme.UnsafeConvertToVersion(in,
		schema.GroupVersion{Group: r.Group, Version: runtime.APIVersionInternal})
	if err != nil {
		t.Fatal(err)
	}
	table, err := g.GenerateTable(hub, printers.GenerateOptions{Wide: true})
	if err != nil {
		return nil
	}
	return table
}

func compareTable(t *testing.T, r *catalog.Resource, v *catalog.Version, seed int64, table *metav1.Table) {
	t.Helper()
	obj := tree(t, randomObject(t, r, v, seed))
	rules := r.StrategyFor(v)
	if _, err := rules.Decode(obj); err != nil {
		t.Fatal(err)
	}
	if rules.Default != nil {
		rules.Default(obj)
	}
	got := rules.Cells(obj, catalog.Env{Now: time.Now()})
	want := table.Rows[0].Cells
	for i := range want {
		want[i] = plain(want[i])
	}
	if !reflect.DeepEqual(got, want) && fmt.Sprintf("%#v", got) != fmt.Sprintf("%#v", want) {
		t.Errorf("seed %d:\ngot  %#v\nwant %#v", seed, got, want)
	}
	if *update {
		return
	}
	if len(v.Columns) != len(table.ColumnDefinitions) {
		t.Fatalf("%d columns, want %d", len(v.Columns), len(table.ColumnDefinitions))
	}
	for i, d := range table.ColumnDefinitions {
		c := v.Columns[i]
		if c.Name != d.Name || c.Type != d.Type || c.Format != d.Format || c.Priority != d.Priority ||
			c.Description != d.Description {
			t.Errorf("column %+v, want %+v", c, d)
		}
	}
}

// plain converts a cell to its JSON type.
func plain(v any) any {
	switch v := v.(type) {
	case int32:
		return int64(v)
	case int:
		return int64(v)
	}
	return v
}

// texts are the texts of the kinds, by file.
type texts map[string]string

func readTexts(t *testing.T) texts {
	t.Helper()
	files, err := filepath.Glob("../../internal/kinds/*/*.txt")
	if err != nil {
		t.Fatal(err)
	}
	out := texts{}
	for _, f := range files {
		data, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		out[f] = string(data)
	}
	return out
}

// compare compares the columns of a kind with the columns of kube's table, or with -update stores them.
func (x texts) compare(t *testing.T, kind string, table *metav1.Table) {
	t.Helper()
	head := "columns " + kind + "\n"
	want := columnLines(table)
	for f, text := range x {
		before, rest, ok := strings.Cut("\n"+text, "\n"+head)
		if !ok {
			continue
		}
		have := rest
		if end := strings.Index(rest, "\n\n"); end >= 0 {
			have = rest[:end+1]
		}
		if *update {
			x[f] = strings.TrimPrefix(before+"\n"+head+want+rest[len(have):], "\n")
		} else if have != want {
			t.Errorf("%s is stale: go test -run TestColumns -update", f)
		}
		return
	}
	t.Errorf("no text has the columns of %s:\n%s%s", kind, head, want)
}

func (x texts) write(t *testing.T) {
	t.Helper()
	for f, text := range x {
		if err := os.WriteFile(f, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

func columnLines(table *metav1.Table) string {
	var b strings.Builder
	for _, d := range table.ColumnDefinitions {
		fmt.Fprintf(&b, "\t%s\t%s\t%s\t%d\t%s\n", d.Name, d.Type, d.Format, d.Priority,
			strings.ReplaceAll(d.Description, "\n", "\\n"))
	}
	return b.String()
}
