package codec

import (
	"bytes"
	"encoding/json"
	"net/http"
	"strconv"
)

// WriteObject responds with an object. doc is its compact JSON, without a line end, and is not changed; if m is
// Protobuf, doc is the complete document. Headers set by the caller stay. A body above 128 KiB is compressed if the
// client accepts it.
func WriteObject(w http.ResponseWriter, r *http.Request, code int, doc []byte, m Media) {
	contentType, body, err := render(doc, m)
	if err != nil {
		WriteError(w, r, err)
		return
	}
	write(w, r, code, contentType, body, lineEnd(m))
}

// WriteKind is WriteObject for a response requested by group, version and kind, which its Content-Type names.
func WriteKind(w http.ResponseWriter, r *http.Request, code int, doc []byte, m Media) {
	contentType, body, err := render(doc, m)
	if err != nil {
		WriteError(w, r, err)
		return
	}
	write(w, r, code, contentType+";g="+m.Group+";v="+m.Version+";as="+m.As, body, lineEnd(m))
}

// WriteBinary is WriteObject for a complete document in m's form, Protobuf or CBOR.
func WriteBinary(w http.ResponseWriter, r *http.Request, code int, doc []byte, m Media) {
	write(w, r, code, m.Type, doc)
}

func write(w http.ResponseWriter, r *http.Request, code int, contentType string, body ...[]byte) {
	w.Header().Set("Content-Type", contentType)
	size := 0
	for _, part := range body {
		size += len(part)
	}
	if size > compressAbove && acceptsGzip(r) {
		c := Compress(w, r)
		defer c.Close()
		w = c
	} else {
		w.Header().Set("Content-Length", strconv.Itoa(size))
	}
	w.WriteHeader(code)
	for _, part := range body {
		_, _ = w.Write(part) // an error means that the client has disconnected
	}
}

// render returns doc in the form m.
func render(doc []byte, m Media) (contentType string, body []byte, err error) {
	switch {
	case m.Type == YAML:
		body, err = ToYAML(doc)
		return YAML, body, err
	case m.Type == Protobuf:
		return Protobuf, doc, nil
	case m.Type == CBOR:
		body, err = ToCBOR(doc)
		return CBOR, body, err
	case m.Pretty:
		var b bytes.Buffer
		b.Grow(len(doc) * 2)
		err = json.Indent(&b, doc, "", "  ")
		return JSON, b.Bytes(), err
	default:
		return JSON, doc, nil
	}
}

// lineEnd returns the end of a document: in Kubernetes compact JSON ends with a newline, indented JSON does not.
func lineEnd(m Media) []byte {
	if m.Type == JSON && !m.Pretty {
		return []byte{'\n'}
	}
	return nil
}
