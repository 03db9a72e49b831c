package aggregation

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/bowsprit/bowsprit/internal/net/forward"
	"github.com/bowsprit/bowsprit/internal/request"
)

// wantsInitialEvents reports whether a request is a watch that begins with the existing objects and a bookmark at their
// end (KEP-3157), in a form that this server can produce itself.
//
// Servers without such watches ignore the parameter and send no bookmark, and client-go then waits forever. So the
// aggregator never forwards such a watch: it lists, and watches from there.
func wantsInitialEvents(r *http.Request, info *request.Info) bool {
	if info.Verb != "watch" || !strings.Contains(r.URL.RawQuery, "sendInitialEvents") || r.Header.Get("Upgrade") != "" {
		return false
	}
	accept := r.Header.Get("Accept")
	return r.URL.Query().Get("sendInitialEvents") == "true" && !strings.Contains(accept, "as=Table") &&
		(accept == "" || strings.Contains(accept, "json") || strings.Contains(accept, "*/*"))
}

// maxInitial bounds the list at the begin of a watch.
const maxInitial = 256 << 20

// initial is a list of another server.
type initial struct {
	Kind       string            `json:"kind"`
	APIVersion string            `json:"apiVersion"`
	Metadata   metav1.ListMeta   `json:"metadata"`
	Items      []json.RawMessage `json:"items"`
}

// watchList answers a watch that begins with the existing objects.
func (a *aggregator) watchList(w http.ResponseWriter, r *http.Request, d *delivery) {
	resp, err := a.ask(r, d, listQuery(r.URL.Query()), true)
	if err != nil {
		a.failed(w, r, d.user, d.remote, err)
		return
	}
	if resp.StatusCode != http.StatusOK {
		relay(w, resp)
		return
	}
	list, err := readInitial(resp)
	if err != nil {
		a.failed(w, r, d.user, d.remote, err)
		return
	}
	query := r.URL.Query()
	query.Del("sendInitialEvents")
	query.Del("resourceVersionMatch")
	query.Set("resourceVersion", list.Metadata.ResourceVersion)
	if resp, err = a.ask(r, d, query, false); err != nil {
		a.failed(w, r, d.user, d.remote, err)
		return
	}
	if resp.StatusCode != http.StatusOK {
		relay(w, resp)
		return
	}
	defer resp.Body.Close()
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusOK)
	if err := list.write(w); err != nil {
		return // the client is gone
	}
	list = nil
	flusher := http.NewResponseController(w)
	buffer := make([]byte, 32<<10)
	for {
		if flusher.Flush() != nil {
			return
		}
		n, err := resp.Body.Read(buffer)
		if n > 0 {
			if _, err := w.Write(buffer[:n]); err != nil {
				return
			}
		}
		if err == io.EOF {
			return
		}
		if err != nil {
			panic(http.ErrAbortHandler) // shows the client that the watch ended early
		}
	}
}

// listQuery converts the query of a watch to the query of the preceding list.
func listQuery(query url.Values) url.Values {
	out := url.Values{}
	for _, name := range []string{"labelSelector", "fieldSelector", "resourceVersion"} {
		if v := query.Get(name); v != "" {
			out.Set(name, v)
		}
	}
	if out.Get("resourceVersion") != "" {
		out.Set("resourceVersionMatch", string(metav1.ResourceVersionMatchNotOlderThan))
	}
	return out
}

// ask sends the client's request with another query. The response is JSON.
func (a *aggregator) ask(r *http.Request, d *delivery, query url.Values, list bool) (*http.Response, error) {
	out := r.Clone(r.Context())
	out.RequestURI, out.URL.RawQuery = "", query.Encode()
	forward.Prepare(out, d.route.address(), d.user)
	out.Header.Set("Accept", jsonOnly(r.Header.Get("Accept"), list))
	out.Header.Del("Accept-Encoding")
	resp, err := carrier{a.certificates}.RoundTrip(out)
	if err != nil {
		return nil, err
	}
	if err := a.inspect(resp); err != nil {
		resp.Body.Close()
		return nil, err
	}
	return resp, nil
}

// jsonOnly returns an Accept header for JSON, and for metadata only if the client asked for that.
func jsonOnly(accept string, list bool) string {
	if !strings.Contains(accept, "as=PartialObjectMetadata") {
		return "application/json"
	}
	as := "PartialObjectMetadata"
	if list {
		as += "List"
	}
	return "application/json;as=" + as + ";g=meta.k8s.io;v=v1"
}

// relay copies a response unchanged.
func relay(w http.ResponseWriter, resp *http.Response) {
	defer resp.Body.Close()
	for _, name := range []string{"Content-Type", "Retry-After", "Warning"} {
		if v := resp.Header.Values(name); len(v) > 0 {
			w.Header()[name] = v
		}
	}
	w.WriteHeader(resp.StatusCode)
	_, _ = io.Copy(w, resp.Body) // an error means that one of the two is gone
}

func readInitial(resp *http.Response) (*initial, error) {
	defer resp.Body.Close()
	data, err := io.ReadAll(io.LimitReader(resp.Body, maxInitial+1))
	if err != nil {
		return nil, err
	}
	if len(data) > maxInitial {
		return nil, errTooLong
	}
	list := &initial{}
	if err := json.Unmarshal(data, list); err != nil {
		return nil, fmt.Errorf("the list with which the watch begins: %w", err)
	}
	return list, nil
}

// write writes the objects of a list as events, and the bookmark at their end.
func (l *initial) write(w io.Writer) error {
	kind := strings.TrimSuffix(l.Kind, "List")
	var b bytes.Buffer
	for _, item := range l.Items {
		b.Reset()
		b.WriteString(`{"type":"ADDED","object":`)
		l.typed(&b, item, kind)
		b.WriteString("}\n")
		if _, err := w.Write(b.Bytes()); err != nil {
			return err
		}
	}
	bookmark, err := json.Marshal(map[string]any{"type": "BOOKMARK", "object": map[string]any{
		"kind": kind, "apiVersion": l.APIVersion, "metadata": map[string]any{
			"resourceVersion": l.Metadata.ResourceVersion, "creationTimestamp": nil,
			"annotations": map[string]string{metav1.InitialEventsAnnotationKey: "true"},
		},
	}})
	if err != nil {
		return err
	}
	_, err = w.Write(append(bookmark, '\n'))
	return err
}

// typed writes an object with its kind, which many servers omit in lists.
func (l *initial) typed(b *bytes.Buffer, item json.RawMessage, kind string) {
	var compact bytes.Buffer
	_ = json.Compact(&compact, item) // it has been parsed
	item = compact.Bytes()
	var have metav1.TypeMeta
	if json.Unmarshal(item, &have) == nil && have.Kind == "" && len(item) > 0 && item[0] == '{' {
		head, _ := json.Marshal(metav1.TypeMeta{Kind: kind, APIVersion: l.APIVersion}) // strings always encode
		b.Write(head[:len(head)-1])
		if item = item[1:]; item[0] != '}' {
			b.WriteByte(',')
		}
	}
	b.Write(item)
}
