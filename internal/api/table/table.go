// Package table prints objects on the server: the Table of meta.k8s.io that kubectl get requests.
//
// It is the last step of a request, after codec has negotiated a Table. Columns are compiled once for each version of a
// kind and shared by all requests. A Writer belongs to one response and appends rows one at a time, so a long list need
// not be in memory as a whole.
//
// Columns of custom kinds are JSON paths, as in kube-apiserver's tableconvertor, or CEL expressions; built-in kinds
// have a function (catalog.Strategy.Cells). Most paths are plain (".status.phase") and are read from an object's stored
// bytes; only other paths, expressions and built-in kinds need the decoded object.
package table

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/bowsprit/bowsprit/internal/api/catalog"
	"github.com/bowsprit/bowsprit/internal/object/codec"
)

// Options configures a Table.
type Options struct {
	// Version is the version of meta.k8s.io: "v1", the default, or "v1beta1".
	Version string
	// IncludeObject is None, Object or Metadata, the default. CheckIncludeObject must accept it.
	IncludeObject metav1.IncludeObjectPolicy
	// NoHeaders omits the column definitions, which a watch sends with its first event only.
	NoHeaders bool
	// Env has the reference time of ages and other data for the cells of built-in kinds.
	Env catalog.Env
}

// Row is an object to print.
type Row struct {
	// JSON is the object in the requested version.
	JSON []byte
	// Object is the decoded object. If it is nil and a column needs it, JSON is decoded.
	Object map[string]any
}

// CheckIncludeObject validates the query parameter includeObject. The error is a 400, worded as kube-apiserver words
// it.
func CheckIncludeObject(value string) error {
	switch metav1.IncludeObjectPolicy(value) {
	case "", metav1.IncludeNone, metav1.IncludeMetadata, metav1.IncludeObject:
		return nil
	}
	return apierrors.NewBadRequest(
		fmt.Sprintf(
			"Unable to convert to Table as requested: includeObject: Invalid value: %q: must be 'Metadata', 'Object', 'None', or empty", value))
}

// Definitions returns the columns of a version, including the name. The result is shared; do not change it.
func Definitions(r *catalog.Resource, v *catalog.Version) []metav1.TableColumnDefinition {
	return printerOf(r, v).definitions
}

// Build returns the Table of rows, a list's with the list's meta.
func Build(r *catalog.Resource, v *catalog.Version, rows []Row, o Options, meta metav1.ListMeta) ([]byte, error) {
	return New(r, v, o).build(rows, meta)
}

func (w *Writer) build(rows []Row, meta metav1.ListMeta) ([]byte, error) {
	size := 1024
	for _, row := range rows {
		size += 256 + len(row.JSON)/4
	}
	dst := w.Header(make([]byte, 0, size), meta)
	for _, row := range rows {
		var err error
		if dst, err = w.AppendRow(context.Background(), dst, row); err != nil {
			return nil, err
		}
	}
	return w.Trailer(dst), nil
}

// Single returns the Table of one object: for a get, a write or a watch event. Its resourceVersion is the object's.
func Single(r *catalog.Resource, v *catalog.Version, row Row, o Options) ([]byte, error) {
	return New(r, v, o).single(row)
}

func (w *Writer) single(row Row) ([]byte, error) {
	var meta metav1.ListMeta
	doc, err := codec.Field(row.JSON, "metadata")
	if err != nil {
		return nil, fmt.Errorf("metadata of an object to print: %w", err)
	}
	if doc != nil {
		version, err := codec.Field(doc, "resourceVersion")
		if err == nil && len(version) > 2 {
			meta.ResourceVersion = string(version[1 : len(version)-1])
		}
	}
	return w.build([]Row{row}, meta)
}

// Writer appends one Table to a byte slice: Header, AppendRow as often as needed, Trailer. It is not safe for
// concurrent use.
type Writer struct {
	p    *printer
	o    Options
	rows int
}

// New returns a Writer of one Table.
func New(r *catalog.Resource, v *catalog.Version, o Options) *Writer {
	return newWriter(printerOf(r, v), o)
}

func newWriter(p *printer, o Options) *Writer {
	if o.Version == "" {
		o.Version = "v1"
	}
	if o.Env.Now.IsZero() {
		o.Env.Now = time.Now()
	}
	return &Writer{p: p, o: o}
}

// Header appends everything before the first row.
func (w *Writer) Header(dst []byte, meta metav1.ListMeta) []byte {
	dst = append(dst, `{"kind":"Table","apiVersion":"meta.k8s.io/`...)
	dst = append(dst, w.o.Version...)
	dst = append(dst, `","metadata":`...)
	m, _ := json.Marshal(meta) // strings and an integer cannot fail
	dst = append(dst, m...)
	dst = append(dst, `,"columnDefinitions":`...)
	if w.o.NoHeaders {
		dst = append(dst, "null"...)
	} else {
		dst = append(dst, w.p.header...)
	}
	return append(dst, `,"rows":[`...)
}

// AppendRow appends the row of one object. It returns an error if row.JSON is not an object, or if ctx has ended; dst
// is then returned unchanged.
func (w *Writer) AppendRow(ctx context.Context, dst []byte, row Row) ([]byte, error) {
	if err := ctx.Err(); err != nil {
		return dst, err
	}
	start := len(dst)
	if w.rows > 0 {
		dst = append(dst, ',')
	}
	dst = append(dst, `{"cells":[`...)
	dst, err := w.p.appendCells(dst, row, w.o.Env)
	if err != nil {
		return dst[:start], err
	}
	dst = append(dst, `],"object":`...)
	dst, err = w.appendObject(dst, row)
	if err != nil {
		return dst[:start], err
	}
	w.rows++
	return append(dst, '}'), nil
}

// Trailer appends everything behind the last row.
func (w *Writer) Trailer(dst []byte) []byte { return append(dst, `]}`...) }

// appendObject appends the requested part of the object.
func (w *Writer) appendObject(dst []byte, row Row) ([]byte, error) {
	if w.o.IncludeObject == metav1.IncludeObject {
		return append(dst, row.JSON...), nil
	}
	if w.o.IncludeObject == metav1.IncludeNone && !endsInitialEvents(row.JSON) {
		return append(dst, "null"...), nil
	}
	meta, err := codec.Field(row.JSON, "metadata")
	if err != nil {
		return dst, fmt.Errorf("metadata of an object to print: %w", err)
	}
	if meta == nil {
		return dst, errors.New("an object to print has no metadata")
	}
	dst = append(dst, `{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/`...)
	dst = append(dst, w.o.Version...)
	dst = append(dst, `","metadata":`...)
	dst = append(dst, meta...)
	return append(dst, '}'), nil
}

// endsInitialEvents reports whether the object is the bookmark after the initial events of a watch. The client needs
// its annotation, so its metadata is included even if no object was requested.
func endsInitialEvents(doc []byte) bool {
	for _, name := range []string{"metadata", "annotations", metav1.InitialEventsAnnotationKey} {
		var err error
		if doc, err = codec.Field(doc, name); err != nil || doc == nil {
			return false
		}
	}
	return string(doc) == `"true"`
}
