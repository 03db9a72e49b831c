package table_test

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/bowsprit/bowsprit/internal/api/catalog"
	"github.com/bowsprit/bowsprit/internal/api/table"
	"github.com/bowsprit/bowsprit/internal/kinds"
)

var (
	now = time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)
	env = catalog.Env{Now: now}
)

func custom(columns ...catalog.Column) (*catalog.Resource, *catalog.Version) {
	v := &catalog.Version{Name: "v1", Served: true, Columns: columns}
	return &catalog.Resource{
		Group: "stable.example.com", Plural: "crontabs", Kind: "CronTab", Namespaced: true,
		Versions: []*catalog.Version{v}, Storage: v,
	}, v
}

const object = `{"apiVersion":"stable.example.com/v1","kind":"CronTab","metadata":{"creationTimestamp":"2026-03-04T05:01:07Z","labels":{"a.b":"dotted"},"name":"my","resourceVersion":"7"},` +
	`"spec":{"cronSpec":"* * \u003c5","replicas":3,"share":0.25,"on":true,"none":null,"list":[{"type":"a","v":1},{"type":"b","v":2}],"map":{"b":1,"a":"\u0026"},"big":100000000000000000000},"status":"odd"}`

func TestCells(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ typ, path, want string }{
		{"string", ".spec.cronSpec", `"* * \u003c5"`},
		{"string", ".spec.replicas", `"3"`},
		{"string", ".spec.share", `"0.25"`},
		{"string", ".spec.big", `"1e+20"`},
		{"string", ".spec.on", `"true"`},
		{"string", ".spec.none", `"\u003cno value\u003e"`},
		{"string", ".spec.map", `"{\"a\":\"\\u0026\",\"b\":1}"`},
		{"string", ".spec.list", `"[{\"type\":\"a\",\"v\":1},{\"type\":\"b\",\"v\":2}]"`},
		{"string", ".spec.absent", `null`},
		{"string", ".spec.cronSpec.below", `null`},
		{"string", ".spec.list.below", `null`},
		{"string", ".status.phase", `null`},
		{"string", `.metadata.labels.a\.b`, `"dotted"`},
		{"string", `.metadata.labels['a\.b']`, `"dotted"`},
		{"string", ".spec.list[0].type", `"a"`},
		{"string", ".spec.list[-1].type", `"b"`},
		{"string", ".spec.list[7].type", `null`},
		{"string", ".spec.list[*].type", `"a"`},
		{"string", `.spec.list[?(@.type=="b")].v`, `"2"`},
		{"string", `.spec.list[?(@.type=="c")].v`, `null`},
		{"string", "..type", `"a"`},
		{"integer", ".spec.replicas", `3`},
		{"integer", ".spec.share", `0`},
		{"integer", ".spec.cronSpec", `null`},
		{"integer", ".spec.none", `null`},
		{"integer", ".spec.list[1].v", `2`},
		{"number", ".spec.replicas", `3`},
		{"number", ".spec.share", `0.25`},
		{"number", ".spec.on", `null`},
		{"boolean", ".spec.on", `true`},
		{"boolean", ".spec.replicas", `null`},
		{"date", ".metadata.creationTimestamp", `"5m"`},
		{"date", ".spec.cronSpec", `"\u003cinvalid\u003e"`},
		{"date", ".spec.replicas", `null`},
		{"date", ".spec.absent", `null`},
	} {
		r, v := custom(catalog.Column{Name: "C", Type: c.typ, JSONPath: c.path})
		data, err := table.Single(r, v, table.Row{JSON: []byte(object)},
			table.Options{Env: env, IncludeObject: metav1.IncludeNone})
		if err != nil {
			t.Fatal(err)
		}
		var got struct {
			Rows []struct{ Cells []json.RawMessage }
		}
		if err := json.Unmarshal(data, &got); err != nil {
			t.Fatalf("%s %s: %v in %s", c.typ, c.path, err, data)
		}
		if cell := string(got.Rows[0].Cells[1]); cell != c.want {
			t.Errorf("%s %s: %s, want %s", c.typ, c.path, cell, c.want)
		}
	}
}

func TestTable(t *testing.T) {
	t.Parallel()
	const small = `{"apiVersion":"stable.example.com/v1","kind":"CronTab","metadata":{"creationTimestamp":"2026-03-02T05:01:07Z","name":"a","resourceVersion":"7"},"spec":{}}`
	const head = `{"kind":"Table","apiVersion":"meta.k8s.io/v1","metadata":{"resourceVersion":"9"},"columnDefinitions":[{"name":"Name","type":"string","format":"name","description":"`
	r, v := custom()
	left := int64(3)
	for _, c := range []struct {
		name string
		o    table.Options
		meta metav1.ListMeta
		rows int
		want string
	}{
		{"metadata", table.Options{}, metav1.ListMeta{ResourceVersion: "9"}, 1,
			head +
				`…"},{"name":"Age","type":"date","format":"","description":"…","priority":0}],"rows":[{"cells":["a","2d"],"object":{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1","metadata":{"creationTimestamp":"2026-03-02T05:01:07Z","name":"a","resourceVersion":"7"}}}]}`},
		{"none", table.Options{IncludeObject: metav1.IncludeNone, NoHeaders: true},
			metav1.ListMeta{ResourceVersion: "9", Continue: "c", RemainingItemCount: &left}, 2,
			`{"kind":"Table","apiVersion":"meta.k8s.io/v1","metadata":{"resourceVersion":"9","continue":"c","remainingItemCount":3},"columnDefinitions":null,"rows":[{"cells":["a","2d"],"object":null},{"cells":["a","2d"],"object":null}]}`},
		{"object", table.Options{Version: "v1beta1", IncludeObject: metav1.IncludeObject, NoHeaders: true},
			metav1.ListMeta{}, 1,
			`{"kind":"Table","apiVersion":"meta.k8s.io/v1beta1","metadata":{},"columnDefinitions":null,"rows":[{"cells":["a","2d"],"object":` + small + `}]}`},
		{"empty", table.Options{NoHeaders: true}, metav1.ListMeta{}, 0,
			`{"kind":"Table","apiVersion":"meta.k8s.io/v1","metadata":{},"columnDefinitions":null,"rows":[]}`},
	} {
		c.o.Env = env
		var rows []table.Row
		for range c.rows {
			rows = append(rows, table.Row{JSON: []byte(small)})
		}
		data, err := table.Build(r, v, rows, c.o, c.meta)
		if err != nil {
			t.Fatal(err)
		}
		got := string(data)
		if c.name == "metadata" {
			docs := metav1.ObjectMeta{}.SwaggerDoc()
			for _, text := range []string{docs["name"], docs["creationTimestamp"]} {
				quoted, _ := json.Marshal(text)
				got = strings.Replace(got, string(quoted[1:len(quoted)-1]), "…", 1)
			}
			got = strings.Replace(got, `…","priority":0}`, `…"}`, 1)
		}
		if got != c.want {
			t.Errorf("%s:\ngot  %s\nwant %s", c.name, got, c.want)
		}
	}
}

// TestWatchBookmark checks that the annotation of the last initial event reaches a client that requested no objects.
func TestWatchBookmark(t *testing.T) {
	t.Parallel()
	r, v := custom()
	bookmark := `{"apiVersion":"stable.example.com/v1","kind":"CronTab","metadata":{"annotations":{"k8s.io/initial-events-end":"true"},"resourceVersion":"12"}}`
	data, err := table.Single(r, v, table.Row{JSON: []byte(bookmark)},
		table.Options{Env: env, IncludeObject: metav1.IncludeNone, NoHeaders: true})
	if err != nil {
		t.Fatal(err)
	}
	want := `{"kind":"Table","apiVersion":"meta.k8s.io/v1","metadata":{"resourceVersion":"12"},"columnDefinitions":null,"rows":[{"cells":["",null],"object":{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1","metadata":{"annotations":{"k8s.io/initial-events-end":"true"},"resourceVersion":"12"}}}]}`
	if string(data) != want {
		t.Errorf("got  %s\nwant %s", data, want)
	}
}

func TestBadColumnEndsTheColumns(t *testing.T) {
	t.Parallel()
	r, v := custom(catalog.Column{Name: "A", Type: "string", JSONPath: ".a"},
		catalog.Column{Name: "B", Type: "string", JSONPath: ".b["},
		catalog.Column{Name: "C", Type: "string", JSONPath: ".c"})
	if d := table.Definitions(r, v); len(d) != 2 || d[1].Name != "A" ||
		d[1].Description != "Custom resource definition column (in JSONPath format): .a" {
		t.Errorf("definitions %+v", d)
	}
}

func TestBadObject(t *testing.T) {
	t.Parallel()
	r, v := custom()
	w := table.New(r, v, table.Options{Env: env})
	if dst, err := w.AppendRow(t.Context(), []byte("x"), table.Row{JSON: []byte(`[]`)}); err == nil ||
		string(dst) != "x" {
		t.Errorf("%q, %v", dst, err)
	}
}

func TestIncludeObject(t *testing.T) {
	t.Parallel()
	for _, ok := range []string{"", "None", "Metadata", "Object"} {
		if err := table.CheckIncludeObject(ok); err != nil {
			t.Error(err)
		}
	}
	want := `Unable to convert to Table as requested: includeObject: Invalid value: "none": must be 'Metadata', 'Object', 'None', or empty`
	if err := table.CheckIncludeObject("none"); err == nil || err.Error() != want {
		t.Errorf("%v", err)
	}
}

// TestBuiltins prints one object of each built-in kind with the columns of kubectl get and get -o wide.
func TestBuiltins(t *testing.T) {
	t.Parallel()
	const meta = `"metadata":{"creationTimestamp":"2026-03-04T04:06:07Z","name":"x"}`
	for _, c := range []struct {
		kind, object string
		headers      string // wide columns in parentheses
		cells        []any
	}{
		{"Namespace", `{` + meta + `,"status":{"phase":"Active"}}`, "Name Status Age", []any{"x", "Active", "60m"}},
		{"ConfigMap", `{` + meta + `,"data":{"a":"1","b":"2"},"binaryData":{"c":""}}`, "Name Data Age",
			[]any{"x", 3.0, "60m"}},
		{"Secret", `{` + meta + `,"type":"Opaque","data":{"a":"MQ=="}}`, "Name Type Data Age",
			[]any{"x", "Opaque", 1.0, "60m"}},
		{"ServiceAccount", `{` + meta + `}`, "Name Age", []any{"x", "60m"}},
		{"Lease", `{` + meta + `,"spec":{"holderIdentity":"me"}}`, "Name Holder Age", []any{"x", "me", "60m"}},
		{"CustomResourceDefinition", `{` + meta + `,"spec":{"group":"example.com","scope":"Cluster",` +
			`"names":{"kind":"Tab","shortNames":["t","ta"]},"versions":[{"name":"v2","served":true,"storage":true},` +
			`{"name":"v1","served":true},{"name":"v0"}]},"status":{"conditions":[{"type":"Established","status":"True"}]}}`,
			"Name Scope Versions Created At (Group) (Kind) (ShortNames) (Established)",
			[]any{"x", "Cluster", "v1,v2(storage)", "2026-03-04T04:06:07Z", "example.com", "Tab", "t,ta", true}},
		{"Event", `{` + meta +
			`,"involvedObject":{"kind":"Pod","name":"p","fieldPath":"spec"},"type":"Normal","reason":"Why","message":" what \n","source":{"component":"me","host":"here"},"firstTimestamp":"2026-03-04T05:05:07Z","lastTimestamp":"2026-03-04T05:06:00Z","count":4}`,
			"Last Seen Type Reason Object (Subobject) (Source) Message (First Seen) (Count) (Name)",
			[]any{"7s", "Normal", "Why", "pod/p", "spec", "me, here", "what", "60s", 4.0, "x"}},
		{"Event", `{` + meta +
			`,"involvedObject":{"kind":"Node"},"eventTime":"2026-03-04T05:05:07.000000Z","reportingComponent":"me","reportingInstance":"me-0","series":{"count":9,"lastObservedTime":"2026-03-04T05:06:06.000000Z"}}`,
			"Last Seen Type Reason Object (Subobject) (Source) Message (First Seen) (Count) (Name)",
			[]any{"1s", "", "", "node", "", "me, me-0", "", "60s", 9.0, "x"}},
		{"Event", `{` + meta + `,"involvedObject":{"kind":"Node"}}`,
			"Last Seen Type Reason Object (Subobject) (Source) Message (First Seen) (Count) (Name)",
			[]any{"<unknown>", "", "", "node", "", "", "", "<unknown>", 1.0, "x"}},
	} {
		for _, r := range kinds.Resources() {
			if r.Kind != c.kind || r.Secondary {
				continue
			}
			data, err := table.Single(r, r.Storage, table.Row{JSON: []byte(c.object)}, table.Options{Env: env})
			if err != nil {
				t.Fatal(err)
			}
			var got metav1.Table
			if err := json.Unmarshal(data, &got); err != nil {
				t.Fatal(err)
			}
			var headers []string
			for _, d := range got.ColumnDefinitions {
				name := d.Name
				if d.Priority > 0 {
					name = "(" + name + ")"
				}
				if d.Description == "" {
					t.Errorf("%s: column %s has no description", c.kind, d.Name)
				}
				headers = append(headers, name)
			}
			if h := strings.Join(headers, " "); h != c.headers {
				t.Errorf("%s: columns %s", c.kind, h)
			}
			if !reflect.DeepEqual(got.Rows[0].Cells, c.cells) {
				t.Errorf("%s: cells %q, want %q", c.kind, got.Rows[0].Cells, c.cells)
			}
		}
	}
}

// TestShared prints with one compiled version from many goroutines; the race detector checks.
func TestShared(t *testing.T) {
	t.Parallel()
	r, v := custom(
		catalog.Column{Name: "A", Type: "string", JSONPath: ".spec.cronSpec"},
		catalog.Column{Name: "B", Type: "string", JSONPath: `.spec.list[?(@.type=="b")].v`},
		catalog.Column{Name: "C", Type: "string", JSONPath: `.spec.list[*].type}{range .spec.list[*]}{.v}{end`},
	)
	want := ""
	done := make(chan string)
	for range 8 {
		go func() {
			data, _ := table.Single(r, v, table.Row{JSON: []byte(object)}, table.Options{Env: env})
			done <- string(data)
		}()
	}
	for range 8 {
		if got := <-done; want == "" {
			want = got
		} else if got != want {
			t.Errorf("differs:\n%s\n%s", got, want)
		}
	}
}
