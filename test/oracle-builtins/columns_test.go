package oraclebuiltins

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
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

var update = flag.Bool("update", false, "rewrite internal/kinds/columns.txt")

// TestColumns prints random objects of every kind with kube's printers and with ours. With -update it writes the
// columns that kube's have, which are data of package kinds.
func TestColumns(t *testing.T) {
	generator := printers.NewTableGenerator().With(printersinternal.AddHandlers)
	var text strings.Builder
	text.WriteString(
		"# Columns of the built-in kinds: name, type, format, priority, description, each behind a tab.\n# Written by TestColumns -update of test/oracle-builtins from kube's printers.\n")
	for _, r := range kinds.Resources() {
		if r.Group == "apiextensions.k8s.io" || r.Secondary || r.Kind == "CSIStorageCapacity" {
			continue // kube-apiserver does not use the printer that it has for CSIStorageCapacity
		}
		for _, v := range r.Versions {
			t.Run(r.Kind+" "+v.Name, func(t *testing.T) {
				for seed := range int64(60) {
					table := theirTable(t, generator, r, v, randomObject(t, r, v, seed))
					if table == nil {
						return // kinds without a printer show name and creation
					}
					if seed == 0 && v == r.Storage {
						writeColumns(&text, r.Kind, table)
					}
					compareTable(t, r, v, seed, table)
					if t.Failed() {
						return
					}
				}
			})
		}
	}
	const file = "../../internal/kinds/columns.txt"
	if *update {
		if err := os.WriteFile(file, []byte(text.String()), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	have, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if string(have) != text.String() {
		t.Errorf("%s is stale: go test -run TestColumns -update", file)
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

// plain is a cell as JSON has it.
func plain(v any) any {
	switch v := v.(type) {
	case int32:
		return int64(v)
	case int:
		return int64(v)
	}
	return v
}

func writeColumns(b *strings.Builder, kind string, table *metav1.Table) {
	fmt.Fprintln(b, kind)
	for _, d := range table.ColumnDefinitions {
		fmt.Fprintf(b, "\t%s\t%s\t%s\t%d\t%s\n", d.Name, d.Type, d.Format, d.Priority,
			strings.ReplaceAll(d.Description, "\n", "\\n"))
	}
}
