package audit

import (
	"net/http"

	authenticationv1 "k8s.io/api/authentication/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	auditapi "k8s.io/apiserver/pkg/apis/audit"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
)

// attributes adapts a request to the policy evaluator's interface.
type attributes struct{ *Received }

var _ authorizer.Attributes = attributes{}

// The target of the request.
func (a attributes) GetUser() user.Info      { return a.User }
func (a attributes) GetVerb() string         { return a.Info.Verb }
func (a attributes) GetNamespace() string    { return a.Info.Namespace }
func (a attributes) GetResource() string     { return a.Info.Resource }
func (a attributes) GetSubresource() string  { return a.Info.Subresource }
func (a attributes) GetName() string         { return a.Info.Name }
func (a attributes) GetAPIGroup() string     { return a.Info.Group }
func (a attributes) GetAPIVersion() string   { return a.Info.Version }
func (a attributes) IsResourceRequest() bool { return a.Info.IsResource }
func (a attributes) GetPath() string         { return a.Info.Path }

// IsReadOnly reports whether the verb only reads.
func (a attributes) IsReadOnly() bool { return !a.Info.Mutating() }

// Policies have no selectors.
func (attributes) GetFieldSelector() (fields.Requirements, error) { return nil, nil }
func (attributes) GetLabelSelector() (labels.Requirements, error) { return nil, nil }

// describe fills in the facts that are known when a request arrives.
func (a *Auditor) describe(rec *Record, r *Received) {
	e := &rec.event
	e.Verb, e.RequestURI, e.UserAgent = r.Info.Verb, r.HTTP.URL.RequestURI(), userAgent(r.HTTP)
	e.SourceIPs = sourceIPs(&a.peers, r.HTTP)
	if r.User != nil {
		cache := knownInfo(&a.users, r.User)
		e.User, rec.user = cache.info, cache.json
	}
	if info := r.Info; info.IsResource {
		rec.memory.ref = auditapi.ObjectReference{
			Namespace: info.Namespace, Name: info.Name, Resource: info.Resource, Subresource: info.Subresource,
			APIGroup: info.Group, APIVersion: info.Version,
		}
		e.ObjectRef = &rec.memory.ref
	}
}

// peers caches the source addresses of connections, by Request.RemoteAddr.
type peers = recent[string, []string]

// sourceIPs returns the source addresses of a request: addresses from proxy headers, then the connection's, usually the
// only one. Callers must not change the result.
func sourceIPs(cache *peers, r *http.Request) []string {
	if r.Header["X-Forwarded-For"] != nil || r.Header["X-Real-Ip"] != nil {
		return addresses(r)
	}
	return cache.of(r.RemoteAddr, func(remote string) []string { return addresses(&http.Request{RemoteAddr: remote}) })
}

func addresses(r *http.Request) []string {
	var all []string
	for _, ip := range utilnet.SourceIPs(r) {
		all = append(all, ip.String())
	}
	return all
}

// users caches recent users: authenticators return the same immutable value again and again.
type users = recent[*user.DefaultInfo, knownUser]

type knownUser struct {
	info authenticationv1.UserInfo
	json []byte // info as written by appendUser; nil if the user is not cached
}

// knownInfo is userInfo, with the user as appendUser writes it.
func knownInfo(cache *users, u user.Info) knownUser {
	info, ok := u.(*user.DefaultInfo)
	if !ok {
		return knownUser{info: userInfo(u)}
	}
	return cache.of(info, func(u *user.DefaultInfo) knownUser {
		info := userInfo(u)
		return knownUser{info, appendUser(nil, &info)}
	})
}

func userInfo(u user.Info) authenticationv1.UserInfo {
	out := authenticationv1.UserInfo{Username: u.GetName(), UID: u.GetUID(), Groups: u.GetGroups()}
	if extra := u.GetExtra(); len(extra) > 0 {
		out.Extra = make(map[string]authenticationv1.ExtraValue, len(extra))
		for key, values := range extra {
			out.Extra[key] = values
		}
	}
	return out
}

// maxUserAgent is how much of a User-Agent is recorded, in bytes; a client may send a megabyte.
const maxUserAgent = 1024

func userAgent(r *http.Request) string {
	agent := r.UserAgent()
	if len(agent) > maxUserAgent {
		agent = agent[:maxUserAgent] + "...TRUNCATED"
	}
	return agent
}
