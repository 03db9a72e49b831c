package h2

import (
	"net/http"
	"net/textproto"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/net/http/httpguts"
	"golang.org/x/net/http2/hpack"
)

// connectionFields are the fields that belong to a connection of HTTP/1 (RFC 9113, 8.2.2).
var connectionFields = []string{"Connection", "Proxy-Connection", "Transfer-Encoding", "Upgrade", "Keep-Alive"}

// canonicalNames and lowerNames convert names that most requests or responses have, without an allocation.
var canonicalNames, lowerNames = func() (map[string]string, map[string]string) {
	up, down := map[string]string{}, map[string]string{}
	for _, name := range []string{
		"Accept", "Accept-Encoding", "Accept-Language", "Audit-Id", "Authorization", "Cache-Control",
		"Content-Encoding", "Content-Length", "Content-Type", "Cookie", "Date", "Etag",
		"If-None-Match", "Impersonate-Group",
		"Impersonate-User", "Kubectl-Command", "Kubectl-Session", "Last-Modified", "Location", "Origin", "Retry-After",
		"Strict-Transport-Security", "Traceparent", "User-Agent", "Vary", "Warning", "X-Content-Type-Options",
		"X-Forwarded-For", "X-Kubernetes-Pf-Flowschema-Uid", "X-Kubernetes-Pf-Prioritylevel-Uid",
	} {
		lower := strings.ToLower(name)
		up[lower], down[name] = name, lower
	}
	return up, down
}()

// canonical returns the form of a field's name in an http.Header.
func canonical(name string) string {
	if key, ok := canonicalNames[name]; ok {
		return key
	}
	return textproto.CanonicalMIMEHeaderKey(name)
}

// makeHeader returns the fields as an http.Header. All values share one array.
func makeHeader(fields []hpack.HeaderField) http.Header {
	header := make(http.Header, len(fields))
	values := make([]string, len(fields))
	for i, field := range fields {
		key := canonical(field.Name)
		if earlier, ok := header[key]; ok {
			header[key] = append(earlier, field.Value)
			continue
		}
		values[i] = field.Value
		header[key] = values[i : i+1 : i+1]
	}
	return header
}

// appendFields appends the fields that a response may have, with the names of HTTP/2.
func appendFields(fields []hpack.HeaderField, header http.Header) []hpack.HeaderField {
	for key, values := range header {
		name, common := lowerNames[key]
		if !common {
			if strings.HasPrefix(key, http.TrailerPrefix) || !httpguts.ValidHeaderFieldName(key) ||
				connectionField(key) {
				continue
			}
			name = strings.ToLower(key)
		}
		for _, value := range values {
			if httpguts.ValidHeaderFieldValue(value) {
				fields = append(fields, hpack.HeaderField{Name: name, Value: value})
			}
		}
	}
	return fields
}

func connectionField(key string) bool {
	for _, field := range connectionFields {
		if strings.EqualFold(key, field) {
			return true
		}
	}
	return false
}

// dateCache formats the time of a response once in a second.
type dateCache struct{ last atomic.Pointer[date] }

type date struct {
	second int64
	text   string
}

func (c *dateCache) text() string {
	now := time.Now()
	if d := c.last.Load(); d != nil && d.second == now.Unix() {
		return d.text
	}
	d := &date{second: now.Unix(), text: now.UTC().Format(http.TimeFormat)}
	c.last.Store(d)
	return d.text
}
