package aggregation

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"sync"
	"time"

	apidiscoveryv2 "k8s.io/api/apidiscovery/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"

	"github.com/bowsprit/bowsprit/internal/control"
	"github.com/bowsprit/bowsprit/internal/feature/aggregation/leftover"
	"github.com/bowsprit/bowsprit/internal/kinds/ref"
	"github.com/bowsprit/bowsprit/internal/net/foreign"
	"github.com/bowsprit/bowsprit/internal/storage/watchcache"
)

// emptyTimeout bounds each request that deletes or counts the objects of another server in a namespace.
const emptyTimeout = 10 * time.Second

// emptiers is the number of servers that one namespace is emptied on at the same time.
const emptiers = 16

// contents are the objects of other servers in namespaces.
type contents struct {
	*aggregator
	ledger *leftover.Ledger
	silent silences
}

var _ control.Contents = (*contents)(nil)

// Empty implements control.Contents. A server that does not answer counts only if its last discovery contains
// namespaced resources with the verbs list and delete, or if it has been available and its resources are not known yet.
// Servers of computed resources, such as metrics, and servers that were never reachable do not count.
func (c *contents) Empty(ctx context.Context, namespace string) (out control.Elsewhere) {
	t := c.table.Load()
	if t == nil {
		return out
	}
	var remotes []*remote
	for _, r := range *t {
		remotes = append(remotes, r)
	}
	slices.SortFunc(remotes, func(a, b *remote) int { return cmp.Compare(a.name, b.name) })
	results := make([]control.Elsewhere, len(remotes))
	places := make(chan struct{}, emptiers) // one for each server
	var all sync.WaitGroup
	for i, r := range remotes {
		places <- struct{}{}
		all.Go(func() {
			defer func() { <-places }()
			results[i] = c.emptyOn(ctx, r, namespace)
		})
	}
	all.Wait()
	for _, r := range results {
		out.Left = append(out.Left, r.Left...)
		out.Failures = append(out.Failures, r.Failures...)
		out.Silent = append(out.Silent, r.Silent...)
	}
	return out
}

// emptyOn deletes the objects of one server.
func (c *contents) emptyOn(ctx context.Context, r *remote, namespace string) (out control.Elsewhere) {
	s := r.state.Load()
	if s == nil { // it may be available
		s = c.await(ctx, r)
	}
	resources, known := c.holding(r), r.documents.Load().raw != nil
	switch {
	case !known && (s.available() || c.wasAvailable(r)), len(resources) > 0 && !s.available():
		c.queue.AddAfter(r.name, checkAtMost)
		version := r.version.Group + "/" + r.version.Version
		out.Silent = append(out.Silent, control.Silent{
			Server: r.name, Undiscovered: true,
			Err: fmt.Errorf("%s: stale GroupVersion discovery: %s", version, version),
		})
		return out
	}
	for i := range resources {
		held, err := c.emptyOf(ctx, r, &resources[i], namespace)
		switch {
		case isSilence(err):
			out.Silent = append(out.Silent, control.Silent{Server: r.name, Err: err})
			return out
		case err != nil:
			out.Failures = append(out.Failures, err)
		case held.Objects > 0:
			out.Left = append(out.Left, held)
		}
	}
	return out
}

// holding returns the resources with objects that have to be deleted with their namespace.
func (c *contents) holding(r *remote) []apidiscoveryv2.APIResourceDiscovery {
	var out []apidiscoveryv2.APIResourceDiscovery
	for _, resource := range r.documents.Load().resources {
		if holds(&resource) {
			out = append(out, resource)
		}
	}
	return out
}

// holds reports whether a namespace may hold objects of a resource that have to be deleted with it.
func holds(r *apidiscoveryv2.APIResourceDiscovery) bool {
	return r.Scope == apidiscoveryv2.ScopeNamespace && slices.Contains(r.Verbs, "list") &&
		(slices.Contains(r.Verbs, "delete") || slices.Contains(r.Verbs, "deletecollection"))
}

// onceAvailable is the time after the creation of an APIService from which a changed condition shows that the server
// has been available.
const onceAvailable = 30 * time.Second

// wasAvailable reports whether a server with unknown resources has been available before: to this replica, or by the
// condition of its APIService to another one.
func (c *contents) wasAvailable(r *remote) bool {
	if r.reached() {
		return true
	}
	e := c.host.View.Collection(ref.APIServices.Prefix).Snapshot().Get("", r.name)
	if e == nil {
		return false
	}
	s := read(e)
	return s != nil && slices.ContainsFunc(s.Status.Conditions, func(one apiregistrationv1.APIServiceCondition) bool {
		return one.Type == apiregistrationv1.Available && (one.Status == apiregistrationv1.ConditionTrue ||
			one.LastTransitionTime.Sub(s.CreationTimestamp.Time) > onceAvailable)
	})
}

// Leave implements control.Contents.
func (c *contents) Leave(ctx context.Context, ns *watchcache.Entry, silent []control.Silent) error {
	var debts []leftover.Debt
	for _, one := range silent {
		r := c.find(one.Server)
		if r == nil {
			return fmt.Errorf("APIService %s has changed", one.Server) // the next run sees it
		}
		d := leftover.Debt{
			Group: r.version.Group, Server: serverOf(&r.spec), APIServices: []string{r.name}, NamespaceUID: ns.UID,
			Since: c.host.Now().UTC().Format(time.RFC3339), State: foreign.Text(one.Err.Error()),
		}
		for _, resource := range c.holding(r) {
			d.Resources = append(d.Resources, resource.Resource)
		}
		debts = append(debts, d)
		c.host.Log.Warn("a namespace is deleted although an aggregated API does not answer; objects may remain there",
			"namespace", ns.Name, "apiService", r.name, "error", one.Err,
			"record", metav1.NamespaceSystem+"/"+leftover.Name(ns.Name))
	}
	return c.ledger.Add(ctx, ns.Name, debts)
}

// serverOf returns the identity of an APIService's server.
func serverOf(spec *apiregistrationv1.APIServiceSpec) leftover.Server {
	return leftover.NewServer(spec.Service.Namespace, spec.Service.Name, spec.CABundle, spec.InsecureSkipTLSVerify)
}

// emptyOf deletes the objects of one resource, and counts the remaining ones.
func (c *contents) emptyOf(
	ctx context.Context, r *remote, resource *apidiscoveryv2.APIResourceDiscovery, namespace string,
) (control.Held, error) {
	held := control.Held{Resource: resource.Resource + "." + r.version.Group, Finalizers: map[string]int{}}
	at := r.path() + "/namespaces/" + namespace + "/" + resource.Resource
	list, err := c.list(ctx, r, at)
	if err != nil || len(list.Items) == 0 {
		return held, err
	}
	if slices.Contains(resource.Verbs, "deletecollection") {
		_, err = c.send(ctx, r, http.MethodDelete, at)
	} else {
		for _, one := range list.Items {
			if _, err = c.send(ctx, r, http.MethodDelete, at+"/"+url.PathEscape(one.Name)); err != nil {
				break
			}
		}
	}
	if err != nil {
		return held, err
	}
	if list, err = c.list(ctx, r, at); err != nil {
		return held, err
	}
	for _, one := range list.Items {
		held.Objects++
		if len(held.Names) < maxHeld {
			held.Names = append(held.Names, resource.Resource+"/"+one.Name)
		}
		for _, f := range one.Finalizers {
			held.Finalizers[f]++
		}
	}
	return held, nil
}

// maxHeld bounds the names of objects that wait for finalizers.
const maxHeld = 20

func (c *contents) list(ctx context.Context, r *remote, at string) (*metav1.PartialObjectMetadataList, error) {
	body, err := c.send(ctx, r, http.MethodGet, at)
	if err != nil {
		return nil, err
	}
	list := &metav1.PartialObjectMetadataList{}
	return list, json.Unmarshal(body, list)
}

// send sends a request to the other server, as the namespace controller. NotFound is treated as empty. An error names
// the version and the path; clients see it in the namespace's conditions, so it does not show the server's address. It
// is a silenceError if the server does not answer.
func (c *contents) send(ctx context.Context, r *remote, method, path string) ([]byte, error) {
	if err := c.silent.enter(r, c.host.Now()); err != nil {
		return nil, err
	}
	body, err := c.sendOnce(ctx, r, method, path)
	if err != nil {
		err = fmt.Errorf("%s: %s %s: %w", r.name, method, path, err)
	}
	if c.silent.leave(r, c.host.Now(), err) {
		c.queue.AddAfter(r.name, checkAtMost)
	}
	return body, err
}

func (c *contents) sendOnce(ctx context.Context, r *remote, method, path string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, emptyTimeout)
	defer cancel()
	at := url.URL{Scheme: "https", Host: r.name, Path: path}
	out, err := http.NewRequestWithContext(ctx, method, at.String(), nil)
	if err != nil {
		return nil, err
	}
	out.Header.Set("Accept", "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json")
	resp, err := c.sendAs(out, r, control.ControllerUser("namespace-controller"))
	if err != nil {
		return nil, &silenceError{withoutAddress(err)}
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxInitial))
	switch {
	case err != nil:
		return nil, &silenceError{withoutAddress(err)}
	case resp.StatusCode == http.StatusNotFound:
		return []byte("{}"), nil
	case resp.StatusCode >= http.StatusInternalServerError:
		return nil, &silenceError{errors.New(foreign.Text(resp.Status))}
	case resp.StatusCode < 200 || resp.StatusCode > 299:
		return nil, errors.New(foreign.Text(resp.Status))
	}
	return body, nil
}

// withoutAddress returns the reason of a failed connection without its addresses.
func withoutAddress(err error) error {
	if op := (*net.OpError)(nil); errors.As(err, &op) && op.Err != nil {
		return op.Err
	}
	return err
}
