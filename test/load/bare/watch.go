package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strings"
	"sync"
)

// hub passes events on to watches. Each is written by itself and flushed, as one does in a handler.
type hub struct {
	mu       sync.Mutex
	watchers map[chan []byte]string // the watched path
}

// watch writes the events of r's path until the client leaves.
func (h *hub) watch(w http.ResponseWriter, r *http.Request) {
	events := make(chan []byte, 1024)
	h.mu.Lock()
	if h.watchers == nil {
		h.watchers = map[chan []byte]string{}
	}
	h.watchers[events] = r.URL.Path
	h.mu.Unlock()
	defer func() {
		h.mu.Lock()
		delete(h.watchers, events)
		h.mu.Unlock()
	}()
	w.Header().Set("Content-Type", "application/json")
	control := http.NewResponseController(w)
	if control.Flush() != nil {
		return
	}
	for {
		select {
		case event := <-events:
			if _, err := w.Write(event); err != nil || control.Flush() != nil {
				return
			}
		case <-r.Context().Done():
			return
		}
	}
}

// send sends event to the watches of the collection at path.
func (h *hub) send(path string, event []byte) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for to, watched := range h.watchers {
		if watched == path {
			to <- event
		}
	}
}

// counter is the one field that a patch may change.
var counter = regexp.MustCompile(`"counter":\d+`)

// patch answers with the object of a, with spec.counter from the merge patch in r, and sends the object to the watches.
func (h *hub) patch(w http.ResponseWriter, r *http.Request, a *answer) {
	body, err := io.ReadAll(r.Body)
	var p struct{ Spec struct{ Counter int } }
	if err == nil {
		err = json.Unmarshal(body, &p)
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	object := bytes.TrimSpace(counter.ReplaceAll(a.body, fmt.Appendf(nil, `"counter":%d`, p.Spec.Counter)))
	h.send(r.URL.Path[:strings.LastIndex(r.URL.Path, "/")],
		fmt.Appendf(nil, "{\"type\":\"MODIFIED\",\"object\":%s}\n", object))
	w.Header()["Content-Type"] = a.header["Content-Type"]
	w.Write(object) // an error means that the client has left
}
