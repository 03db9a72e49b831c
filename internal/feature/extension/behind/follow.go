package behind

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/bowsprit/bowsprit/internal/net/foreign"
	"github.com/bowsprit/bowsprit/internal/object"
)

// follower lists and watches a path of the host.
type follower struct {
	host  *Host
	path  string // of a collection: "/api/v1/namespaces"
	query url.Values
	// replace receives all objects, and change each later event. After an error of either, the follower lists again.
	replace func(ctx context.Context, items []object.Object) error
	change  func(ctx context.Context, event watch.EventType, obj object.Object) error
	// failed receives each error, and nil after a success.
	failed func(error)
}

// Pauses before the next attempt after an error.
const (
	retryFirst = 100 * time.Millisecond
	retryMost  = 30 * time.Second
)

// run follows until ctx ends, and returns nil then.
func (f *follower) run(ctx context.Context) error {
	pause := retryFirst
	for ctx.Err() == nil {
		began := time.Now()
		err := f.once(ctx)
		if ctx.Err() != nil {
			return nil
		}
		if err == nil {
			pause = retryFirst // the watch has ended
			continue
		}
		f.failed(err)
		if time.Since(began) > retryMost {
			pause = retryFirst
		}
		select {
		case <-ctx.Done():
		case <-time.After(pause):
		}
		pause = min(2*pause, retryMost)
	}
	return nil
}

// list is the JSON of a collection.
type list struct {
	Metadata metav1.ListMeta `json:"metadata"`
	Items    []object.Object `json:"items"`
}

// once lists, and watches from there until the watch ends.
func (f *follower) once(ctx context.Context) error {
	var all list
	if err := f.host.get(ctx, f.path, f.query, &all); err != nil {
		return err
	}
	for _, item := range all.Items {
		object.WholeNumbers(item)
	}
	if err := f.replace(ctx, all.Items); err != nil {
		return err
	}
	f.failed(nil)
	for revision := all.Metadata.ResourceVersion; ; {
		next, err := f.watch(ctx, revision)
		if err != nil || next == revision { // a watch without an event: check whether the list still works
			return err
		}
		revision = next
	}
}

// watch passes on events until the host ends the watch, and returns the revision of the last one.
func (f *follower) watch(ctx context.Context, revision string) (last string, err error) {
	query := url.Values{"watch": {"true"}, "allowWatchBookmarks": {"true"}, "resourceVersion": {revision}}
	for key, values := range f.query {
		query[key] = values
	}
	res, err := f.host.do(ctx, http.MethodGet, f.path, query)
	if err != nil {
		return revision, err
	}
	defer res.Body.Close()
	decoder := json.NewDecoder(res.Body)
	for {
		var event struct {
			Type   watch.EventType `json:"type"`
			Object object.Object   `json:"object"`
		}
		if err := decoder.Decode(&event); err != nil {
			return revision, nil // end of the stream, clean or not: the next watch continues from here
		}
		if event.Type == watch.Error {
			return revision, fmt.Errorf("watch of %s: %s", f.path, foreign.Text(object.String(event.Object, "message")))
		}
		if event.Type != watch.Bookmark {
			object.WholeNumbers(event.Object)
			if err := f.change(ctx, event.Type, event.Object); err != nil {
				return revision, err
			}
		}
		revision = object.String(event.Object, "metadata", "resourceVersion")
	}
}

// get reads JSON.
func (h *Host) get(ctx context.Context, path string, query url.Values, into any) error {
	ctx, cancel := context.WithTimeout(ctx, getTimeout)
	defer cancel()
	res, err := h.do(ctx, http.MethodGet, path, query)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	if err := json.NewDecoder(res.Body).Decode(into); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return nil
}

// getTimeout bounds one read of the host.
const getTimeout = 30 * time.Second

// do sends a request, and turns a failure status into an error.
func (h *Host) do(ctx context.Context, method, path string, query url.Values) (*http.Response, error) {
	r, err := http.NewRequestWithContext(ctx, method, h.url+path+"?"+query.Encode(), nil)
	if err != nil {
		return nil, err
	}
	return h.send(r)
}

func (h *Host) send(r *http.Request) (*http.Response, error) {
	r.Header.Set("Accept", "application/json")
	res, err := h.client.Do(r)
	if err != nil {
		return nil, err
	}
	if res.StatusCode == http.StatusOK || res.StatusCode == http.StatusCreated {
		return res, nil
	}
	defer res.Body.Close()
	var status metav1.Status
	text, err := foreign.ReadAll(res.Body, foreign.MaxDocument)
	if err == nil && json.Unmarshal(text, &status) == nil && status.Message != "" {
		foreign.Status(&status)
		return nil, &apierrors.StatusError{ErrStatus: status}
	}
	return nil, fmt.Errorf("%s: %w: %s", r.URL.Path, errAnswer, foreign.Text(res.Status))
}

// apply applies an object at the host.
func (h *Host) apply(ctx context.Context, path string, obj object.Object) error {
	body, err := json.Marshal(obj)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, getTimeout)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodPatch,
		h.url+path+"?force=true&fieldManager=bowsprit-extension", bytes.NewReader(body))
	if err != nil {
		return err
	}
	r.Header.Set("Content-Type", string(types.ApplyPatchType))
	res, err := h.send(r)
	if err != nil {
		return err
	}
	return res.Body.Close()
}

var errAnswer = errors.New("unexpected answer")
