// Package leftover records the objects that servers behind APIServices may still have in deleted namespaces.
//
// The namespace controller adds a debt when the deletion of a namespace no longer waits for a silent server. Requests
// of the group in a namespace of that name are refused until the debt is paid. A Record is a ConfigMap with the debts
// of one namespace; a Ledger has the records of all namespaces, follows them in the view, and is safe for concurrent
// use. See docs/design/dead-servers.md.
package leftover

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/bowsprit/bowsprit/internal/net/foreign"
)

// Server identifies a server by the fields of an APIService that clients trust: its service and its authorities.
type Server struct {
	// Service is "namespace/name".
	Service string `json:"service"`
	// Authorities is the SHA-256 of the CA bundle in hex, "" for an empty one. Insecure is true if the certificate is
	// not verified.
	Authorities string `json:"authorities,omitempty"`
	Insecure    bool   `json:"insecure,omitempty"`
}

// NewServer returns the identity of the server of an APIService.
func NewServer(namespace, name string, bundle []byte, insecure bool) Server {
	s := Server{Service: namespace + "/" + name, Insecure: insecure}
	if len(bundle) > 0 {
		sum := sha256.Sum256(bundle)
		s.Authorities = hex.EncodeToString(sum[:])
	}
	return s
}

// Debt is the objects of one group that one server may have in a namespace that was deleted.
type Debt struct {
	Group string `json:"group"`
	Server
	// APIServices were the server's APIServices of the group, and Resources its namespaced resources, both sorted.
	APIServices []string `json:"apiServices,omitempty"`
	Resources   []string `json:"resources,omitempty"`
	// NamespaceUID and Since are about the last namespace that was deleted: its uid, and the time in RFC 3339.
	NamespaceUID string `json:"namespaceUID"`
	Since        string `json:"since"`
	// State is the reason why the debt is not paid yet.
	State string `json:"state"`
	// Held are objects that wait for finalizers, "<resource>/<name>", sorted.
	Held []string `json:"held,omitempty"`
}

const (
	// MaxDebts bounds the debts of a record.
	MaxDebts = 64
	// MaxRecords bounds the number of records.
	MaxRecords = 10_000
	// maxNames bounds each list of a debt, and maxState the text of its state in bytes.
	maxNames = 20
	maxState = 500
	// maxGroup is the length of a group in a key.
	maxGroup = 180
)

// key returns the debt's key in a ConfigMap.
func (d *Debt) key() string {
	insecure := ""
	if d.Insecure {
		insecure = "insecure"
	}
	sum := sha256.Sum256([]byte(strings.Join([]string{d.Group, d.Service, d.Authorities, insecure}, "\n")))
	return d.Group[:min(len(d.Group), maxGroup)] + "." + hex.EncodeToString(sum[:6])
}

// bound cuts the debt to its bounds.
func (d *Debt) bound() {
	d.State = foreign.Cut(d.State, maxState)
	for _, list := range []*[]string{&d.APIServices, &d.Resources, &d.Held} {
		slices.Sort(*list)
		*list = slices.Compact(*list)
		*list = (*list)[:min(len(*list), maxNames)]
	}
}

// add merges a new debt of the same server and group.
func (d *Debt) add(more Debt) {
	more.APIServices = append(more.APIServices, d.APIServices...)
	more.Resources = append(more.Resources, d.Resources...)
	more.Held = nil
	*d = more
}

// Record is the debts of one namespace by their keys. It does not change.
type Record map[string]*Debt

// readRecord decodes the data of a ConfigMap. It skips values that are no debts.
func readRecord(data map[string]string) Record {
	r := Record{}
	for key, text := range data {
		d := &Debt{}
		if json.Unmarshal([]byte(text), d) == nil && d.Service != "" && len(r) < MaxDebts {
			r[key] = d
		}
	}
	return r
}

// Debts returns the debts in a fixed order.
func (r Record) Debts() (all []*Debt) {
	for _, key := range slices.Sorted(maps.Keys(r)) {
		all = append(all, r[key])
	}
	return all
}

// Of returns the debts of a group in a fixed order.
func (r Record) Of(group string) []*Debt {
	return slices.DeleteFunc(r.Debts(), func(d *Debt) bool { return d.Group != group })
}
