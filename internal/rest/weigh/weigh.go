// Package weigh estimates the cost of a list or a watch for flow control, before it runs.
//
// It reads the view with a few lookups and makes no decisions. Its functions are safe for concurrent use.
package weigh

import (
	"net/url"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/bowsprit/bowsprit/internal/request"
	"github.com/bowsprit/bowsprit/internal/verb"
)

// Bytes returns the size of the objects that a list, or the start of a watch, reads. The estimate covers the namespace,
// the named object or the objects in an index, within the request's limit. known is false if the resource is not stored
// here. If the exact size is expensive to determine, the result is an upper bound.
func Bytes(r *verb.Reader, info *request.Info, query string) (bytes int64, known bool) {
	res, ver := r.Catalog().Snapshot().Served(info.Group, info.Version, info.Resource)
	if res == nil || res.Virtual || info.Subresource != "" {
		return 0, false
	}
	collection, namespace := r.View().Collection(res.Prefix), info.Namespace
	if !res.Namespaced {
		namespace = ""
	}
	objects, total := 0, 0
	if name, value := indexOf(r, &verb.Call{Resource: res, Version: ver, Namespace: namespace}, info); name != nil {
		objects, total, known = collection.WeighBy(name, value, namespace)
	}
	if !known {
		objects, total = collection.Snapshot().Weigh(namespace)
	}
	if objects == 0 {
		return 0, true
	}
	limit := objects
	if strings.Contains(query, "limit=") {
		values, _ := url.ParseQuery(query)
		if n, err := strconv.Atoi(values.Get("limit")); err == nil && n > 0 {
			limit = min(limit, n)
		}
	}
	if info.Name != "" {
		limit = 1
	}
	return int64(total) * int64(limit) / int64(objects), true
}

// Narrow reports whether a watch waits only for objects with one value of a field or label, so that other writes do not
// wake it.
func Narrow(r *verb.Reader, info *request.Info) bool {
	res, ver := r.Catalog().Snapshot().Served(info.Group, info.Version, info.Resource)
	if res == nil {
		return false
	}
	name, _ := indexOf(r, &verb.Call{Resource: res, Version: ver, Namespace: info.Namespace}, info)
	return name != nil
}

// indexOf returns the name of the index for a request's selectors and the value to look up; nil if there is none. It
// ignores selectors that it cannot parse; the verb refuses them.
func indexOf(r *verb.Reader, c *verb.Call, info *request.Info) (name any, value string) {
	if info.FieldSelector == "" && info.LabelSelector == "" || len(info.FieldSelector)+len(info.LabelSelector) > 1<<10 {
		return nil, ""
	}
	byField, err := fields.ParseSelector(info.FieldSelector)
	if err != nil {
		return nil, ""
	}
	byLabel, err := labels.Parse(info.LabelSelector)
	if err != nil {
		return nil, ""
	}
	return r.IndexOf(c, byLabel, byField)
}
