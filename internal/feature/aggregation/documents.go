package aggregation

import (
	"context"
	"encoding/json"
	"mime"
	"net/http"
	"slices"
	"strings"
	"time"

	apidiscoveryv2 "k8s.io/api/apidiscovery/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/bowsprit/bowsprit/internal/api/catalog"
)

// documents are the last discovery and OpenAPI documents of another server. They are immutable.
type documents struct {
	// from is the hash of the body that resources were read from, etag its ETag.
	from, etag string
	// raw is resources as JSON, nil if the other server has never listed any.
	raw       []byte
	resources []apidiscoveryv2.APIResourceDiscovery
	// stale is true if the other server's current list of resources is unusable, or not known yet.
	stale  bool
	v3, v2 *savedDocument
}

// note replaces the documents of the other server by the result of change, and saves them.
func (a *aggregator) note(r *remote, change func(*documents)) {
	a.mu.Lock()
	defer a.mu.Unlock()
	next := *r.documents.Load()
	change(&next)
	r.documents.Store(&next)
	if a.mu.remotes[r.name] == r {
		a.save(r, &next)
		a.publishLocked()
	}
}

// learn updates the resources of the other server. listed is its response to the check.
func (a *aggregator) learn(ctx context.Context, r *remote, body []byte) {
	old := r.documents.Load()
	next, err := a.discover(ctx, r, old, body)
	if ctx.Err() != nil {
		return
	}
	failures := r.learned(err == nil)
	if failures == 1 {
		a.host.Log.Warn("the resources of an aggregated API cannot be read; discovery shows the last known ones as stale",
			"apiService", r.name, "error", err)
	}
	switch {
	case failures > 0 && !old.stale:
		a.note(r, func(d *documents) { d.stale = true })
	case failures == 0 && (next.from != old.from || old.stale):
		a.note(r, func(d *documents) {
			d.from, d.etag, d.raw, d.resources, d.stale = next.from, next.etag, next.raw, next.resources, false
		})
	}
}

const (
	// describeTimeout bounds the request for the discovery document.
	describeTimeout = 5 * time.Second
	// acceptAggregated asks for aggregated discovery.
	acceptAggregated = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList," +
		"application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList"
)

// discover requests the aggregated discovery document of the other server. For a server without it, it uses the
// resources listed by the check.
func (a *aggregator) discover(ctx context.Context, r *remote, old *documents, body []byte) (*documents, error) {
	out, err := a.get(ctx, r, &documentRequest{
		path: "/apis", accept: acceptAggregated, etag: old.etag, timeout: describeTimeout, limit: maxListed,
	})
	switch {
	case err == nil && out.code == http.StatusNotModified && old.etag != "":
		return old, nil
	case err == nil && out.code == http.StatusOK && isAggregated(out.contentType):
		resources, err := resourcesIn(out.body, r.version)
		return newDocuments(out.body, out.etag, resources, err)
	}
	resources, failed := resourcesOf(body)
	if failed != nil && err != nil {
		return nil, err
	}
	return newDocuments(body, "", resources, failed)
}

// newDocuments returns documents with the resources read from body.
func newDocuments(
	body []byte, etag string, resources []apidiscoveryv2.APIResourceDiscovery, err error,
) (*documents, error) {
	if err != nil {
		return nil, err
	}
	raw, err := json.Marshal(resources)
	return &documents{from: sum(body), etag: etag, raw: raw, resources: resources}, err
}

// isAggregated reports whether a response is in one of the forms of acceptAggregated.
func isAggregated(contentType string) bool {
	base, params, err := mime.ParseMediaType(contentType)
	return err == nil && base == "application/json" && params["g"] == "apidiscovery.k8s.io" &&
		params["as"] == "APIGroupDiscoveryList" && (params["v"] == "v2" || params["v"] == "v2beta1")
}

// resourcesIn returns the resources of a version from an aggregated document, or none if the version is missing.
func resourcesIn(body []byte, version catalog.GroupVersionName) ([]apidiscoveryv2.APIResourceDiscovery, error) {
	var list apidiscoveryv2.APIGroupDiscoveryList // v2beta1 has the same fields
	if body == nil {
		return nil, errTooLong
	}
	if err := json.Unmarshal(body, &list); err != nil {
		return nil, err
	}
	for _, g := range list.Items {
		for _, v := range g.Versions {
			if g.Name == version.Group && v.Version == version.Version {
				for i := range v.Resources {
					fillKinds(&v.Resources[i])
				}
				return v.Resources, nil
			}
		}
	}
	return nil, nil
}

// fillKinds replaces missing kinds by empty ones: clients of 1.26 crash on missing ones.
func fillKinds(r *apidiscoveryv2.APIResourceDiscovery) {
	if r.ResponseKind == nil {
		r.ResponseKind = &metav1.GroupVersionKind{}
	}
	for i := range r.Subresources {
		if r.Subresources[i].ResponseKind == nil {
			r.Subresources[i].ResponseKind = &metav1.GroupVersionKind{}
		}
	}
}

// resourcesOf converts a list of resources, keeping its order.
func resourcesOf(body []byte) ([]apidiscoveryv2.APIResourceDiscovery, error) {
	if len(body) == 0 {
		return nil, errTooLong
	}
	var list metav1.APIResourceList
	if err := json.Unmarshal(body, &list); err != nil {
		return nil, err
	}
	var out []apidiscoveryv2.APIResourceDiscovery
	group, version, found := strings.Cut(list.GroupVersion, "/")
	if !found {
		group, version = "", list.GroupVersion
	}
	kindOf := func(r *metav1.APIResource) *metav1.GroupVersionKind {
		k := &metav1.GroupVersionKind{Group: r.Group, Version: r.Version, Kind: r.Kind}
		if k.Group == "" && k.Version == "" {
			k.Group, k.Version = group, version
		}
		return k
	}
	at := map[string]int{}
	of := func(name string) *apidiscoveryv2.APIResourceDiscovery {
		i, ok := at[name]
		if !ok {
			i = len(out)
			at[name], out = i, append(out, apidiscoveryv2.APIResourceDiscovery{Resource: name})
		}
		return &out[i]
	}
	for i := range list.APIResources {
		r := &list.APIResources[i]
		scope := apidiscoveryv2.ScopeCluster
		if r.Namespaced {
			scope = apidiscoveryv2.ScopeNamespace
		}
		name, sub, isSub := strings.Cut(r.Name, "/")
		to := of(name)
		if isSub {
			to.Subresources = append(to.Subresources, apidiscoveryv2.APISubresourceDiscovery{
				Subresource: sub, ResponseKind: kindOf(r), Verbs: slices.Clone(r.Verbs),
			})
			if to.Scope == "" { // a subresource without the resource itself
				to.Scope, to.ResponseKind = scope, &metav1.GroupVersionKind{}
			}
			continue
		}
		to.ResponseKind, to.Scope, to.SingularResource = kindOf(r), scope, r.SingularName
		to.Verbs, to.ShortNames, to.Categories = slices.Clone(r.Verbs), r.ShortNames, r.Categories
	}
	return out, nil
}
