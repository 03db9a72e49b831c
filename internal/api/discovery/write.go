package discovery

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"sigs.k8s.io/yaml"

	"github.com/bowsprit/bowsprit/internal/api/catalog"
	"github.com/bowsprit/bowsprit/internal/object/codec"
	"github.com/bowsprit/bowsprit/internal/request"
)

// object is a document that all encodings can be made from.
type object = runtime.Object

// answer is a document before it is encoded.
type answer struct {
	object func() object
	// json is the encoded object, for cached documents; nil means to encode object.
	json []byte
}

// compressFrom is the size in bytes from which a response is compressed for clients that accept gzip, as in Kubernetes.
const compressFrom = 128 * 1024

func (h *Handler) write(w http.ResponseWriter, r *http.Request, m media, a answer) {
	body, err := encode(m, a)
	if err != nil {
		h.options.WriteError(w, r, err)
		return
	}
	if err := record(r, a); err != nil {
		h.options.WriteError(w, r, err)
		return
	}
	w.Header().Set("Content-Type", m.header())
	if len(body) <= compressFrom || !takesGzip(r) {
		w.Header().Set("Content-Length", strconv.Itoa(len(body)))
		if r.Method != http.MethodHead {
			w.Write(body) // an error means that the client has disconnected
		}
		return
	}
	w.Header().Set("Content-Encoding", "gzip")
	w.Header().Add("Vary", "Accept-Encoding")
	if r.Method == http.MethodHead {
		return
	}
	z, _ := gzip.NewWriterLevel(w, gzip.BestSpeed) // fails only for an unknown level
	z.Write(body)
	z.Close()
}

// record records the response in the audit log, as JSON.
func record(r *http.Request, a answer) error {
	log := request.RecordOf(r.Context())
	if log == nil || !log.Answers() {
		return nil
	}
	doc, err := encode(media{contentType: runtime.ContentTypeJSON}, a)
	if err == nil {
		log.ResponseObject(doc)
	}
	return err
}

func takesGzip(r *http.Request) bool {
	for _, coding := range strings.Split(r.Header.Get("Accept-Encoding"), ",") {
		if strings.TrimSpace(coding) == "gzip" {
			return true
		}
	}
	return false
}

func encode(m media, a answer) ([]byte, error) {
	if m.contentType == runtime.ContentTypeProtobuf {
		var b bytes.Buffer
		err := protobuf.NewSerializer(nil, nil).Encode(a.object(), &b)
		return b.Bytes(), err
	}
	body := a.json
	if body == nil {
		var err error
		if body, err = json.Marshal(a.object()); err != nil {
			return nil, fmt.Errorf("encode discovery: %w", err)
		}
		body = append(body, '\n')
	}
	switch {
	case m.contentType == codec.CBOR:
		return codec.ToCBOR(body)
	case m.contentType == runtime.ContentTypeYAML:
		return yaml.JSONToYAML(body)
	case m.pretty:
		var b bytes.Buffer
		err := json.Indent(&b, bytes.TrimSpace(body), "", "  ")
		return b.Bytes(), err
	}
	return body, nil
}

// Paths returns the sorted paths of groups and versions, the API's part of the list at the server's root.
func Paths(snap *catalog.Snapshot) []string {
	paths := []string{"/api", "/apis", "/apis/"}
	for _, g := range snap.Groups() {
		root := "/api"
		if g.Name != "" {
			root = "/apis/" + g.Name
			paths = append(paths, root)
		}
		for _, v := range g.Versions {
			paths = append(paths, root+"/"+v.Name)
		}
	}
	slices.Sort(paths)
	return paths
}
