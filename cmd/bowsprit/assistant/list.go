package assistant

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/bowsprit/bowsprit/cmd/bowsprit/assistant/answer"
	"github.com/bowsprit/bowsprit/cmd/bowsprit/connect"
)

// rowsPerRequest is the number of objects in a response of the server: some more than a page has.
const rowsPerRequest = 100

// The media types of lists: as tables, and with the metadata of the objects alone.
const (
	asTable    = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"
	asMetadata = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io,application/json"
)

// listInput are the parameters of list.
type listInput struct {
	Kind          string `json:"kind" jsonschema:"the kind, such as pods, deploy or databases.example.com"`
	Namespace     string `json:"namespace,omitempty" jsonschema:"the namespace (default: that of the context)"`
	AllNamespaces bool   `json:"allNamespaces,omitempty" jsonschema:"the objects of all namespaces"`
	Selector      string `json:"selector,omitempty" jsonschema:"a label selector, such as app=web,tier!=cache"`
	FieldSelector string `json:"fieldSelector,omitempty" jsonschema:"a field selector, such as spec.nodeName=one"`
	Wide          bool   `json:"wide,omitempty" jsonschema:"also the columns of kubectl get -o wide"`
	Size
}

func (t *Tools) list(ctx context.Context, in *listInput) (*answer.Answer, error) {
	r, err := connect.Named(t.discovery, in.Kind)
	if err != nil {
		return nil, err
	}
	ans := &answer.Answer{}
	ans.Field("kind", "%q in version %q", title(r), r.Version)
	l := &listing{Tools: t, in: in, accept: asTable, path: []string{"api", r.Version}}
	if r.Group != "" {
		l.path = []string{"apis", r.Group, r.Version}
	}
	switch {
	case !r.Namespaced:
	case in.AllNamespaces:
		l.namespaces = true
		ans.Field("namespace", "all")
	default:
		namespace, err := t.namespace(in.Namespace)
		if err != nil {
			return nil, err
		}
		l.path = append(l.path, "namespaces", namespace)
		ans.Field("namespace", "%q", namespace)
	}
	l.path = append(l.path, r.Resource)
	if fields, err := t.fields(r); err != nil || fields != nil {
		l.accept = asMetadata
		ans.Field("columns", "names and ages only, because the kind has sensitive fields, or its schema cannot be read")
	}
	table, err := l.request(ctx, "")
	if err != nil {
		return nil, err
	}
	count := int64(len(table.Rows) + len(table.Items))
	if rest := table.Metadata.RemainingItemCount; rest != nil {
		count += *rest
	}
	if table.Metadata.Continue == "" || table.Metadata.RemainingItemCount != nil {
		ans.Field("objects", "%d", count)
	}
	ans.Head = l.head(table)
	ans.Lines, ans.More = l.rows(table)
	return ans, nil
}

// listing is a list in pages of the server.
type listing struct {
	*Tools
	in         *listInput
	path       []string
	accept     string
	namespaces bool // the first column is the namespace
}

// table is a Table, or a list of objects of a server without Tables for the kind.
type table struct {
	Metadata          metav1.ListMeta                `json:"metadata"`
	ColumnDefinitions []metav1.TableColumnDefinition `json:"columnDefinitions"`
	Rows              []struct {
		Cells  []any                        `json:"cells"`
		Object metav1.PartialObjectMetadata `json:"object"`
	} `json:"rows"`
	Items []metav1.PartialObjectMetadata `json:"items"`
}

func (l *listing) request(ctx context.Context, next string) (*table, error) {
	req := l.raw.Get().AbsPath(l.path...).SetHeader("Accept", l.accept).Param("limit", strconv.Itoa(rowsPerRequest))
	for name, value := range map[string]string{
		"labelSelector": l.in.Selector, "fieldSelector": l.in.FieldSelector, "continue": next,
	} {
		if value != "" {
			req.Param(name, value)
		}
	}
	result := req.Do(ctx)
	if err := result.Error(); err != nil {
		return nil, err
	}
	data, err := result.Raw()
	if err != nil {
		return nil, err
	}
	var out table
	if err := json.Unmarshal(data, &out); err != nil {
		return nil, fmt.Errorf("the server's list: %w", err)
	}
	return &out, nil
}

// has reports whether a column is shown.
func (l *listing) has(c *metav1.TableColumnDefinition) bool { return c.Priority == 0 || l.in.Wide }

// head returns the names of the columns.
func (l *listing) head(t *table) string {
	var names []string
	if l.namespaces {
		names = append(names, "NAMESPACE")
	}
	if len(t.ColumnDefinitions) == 0 {
		return answer.Row(append(names, "NAME", "AGE")...)
	}
	for i := range t.ColumnDefinitions {
		if c := &t.ColumnDefinitions[i]; l.has(c) {
			names = append(names, strings.ToUpper(c.Name))
		}
	}
	return answer.Row(names...)
}

// rows returns the rows of a response, and the source of further ones.
func (l *listing) rows(t *table) (lines []string, more answer.Source) {
	for i := range t.Rows {
		var cells []string
		for n, cell := range t.Rows[i].Cells {
			if n < len(t.ColumnDefinitions) && l.has(&t.ColumnDefinitions[n]) {
				cells = append(cells, cellText(cell))
			}
		}
		lines = append(lines, l.row(&t.Rows[i].Object, cells))
	}
	for i := range t.Items {
		o := &t.Items[i]
		lines = append(lines, l.row(o, []string{o.Name, age(o, l.now())}))
	}
	if t.Metadata.Continue == "" {
		return lines, nil
	}
	return lines, func(ctx context.Context) ([]string, answer.Source, error) {
		next, err := l.request(ctx, t.Metadata.Continue)
		if err != nil {
			return nil, nil, fmt.Errorf("the rest of the list: %w", err)
		}
		lines, more := l.rows(next)
		return lines, more, nil
	}
}

func (l *listing) row(o *metav1.PartialObjectMetadata, cells []string) string {
	if l.namespaces {
		cells = append([]string{o.Namespace}, cells...)
	}
	return answer.Row(cells...)
}

// age returns the age of an object as kubectl prints it.
func age(o *metav1.PartialObjectMetadata, now time.Time) string {
	if o.CreationTimestamp.IsZero() {
		return "<unknown>"
	}
	return duration.HumanDuration(now.Sub(o.CreationTimestamp.Time))
}

// cellText returns the value of a cell as kubectl prints it.
func cellText(value any) string {
	switch value := value.(type) {
	case nil:
		return "<none>"
	case string:
		return value
	case float64:
		return strconv.FormatFloat(value, 'f', -1, 64)
	case bool:
		return strconv.FormatBool(value)
	}
	data, err := json.Marshal(value)
	if err != nil { // it was decoded from JSON
		return err.Error()
	}
	return string(data)
}
