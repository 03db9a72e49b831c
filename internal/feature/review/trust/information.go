package trust

import (
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"slices"
	"time"
)

// information is the content of the ConfigMap.
type information struct {
	clientCA, proxyCA []byte // PEM
	headers           Headers
}

// The keys of the ConfigMap.
const (
	keyClientCA      = "client-ca-file"
	keyProxyCA       = "requestheader-client-ca-file"
	keyUsername      = "requestheader-username-headers"
	keyUID           = "requestheader-uid-headers"
	keyGroup         = "requestheader-group-headers"
	keyExtraPrefixes = "requestheader-extra-headers-prefix"
	keyAllowedNames  = "requestheader-allowed-names"
)

// parse parses the data of a ConfigMap. It ignores unreadable values.
func parse(data map[string]string) information {
	list := func(key string) (values []string) {
		if json.Unmarshal([]byte(data[key]), &values) != nil {
			return nil
		}
		return values
	}
	return information{
		clientCA: []byte(data[keyClientCA]), proxyCA: []byte(data[keyProxyCA]), headers: Headers{
			Username: list(keyUsername), UID: list(keyUID), Group: list(keyGroup),
			ExtraPrefixes: list(keyExtraPrefixes), AllowedNames: list(keyAllowedNames),
		},
	}
}

// merge returns the union of the stored and the required information, without expired authorities.
func (i information) merge(there information, now time.Time) information {
	return information{
		clientCA: certificates(now, there.clientCA, i.clientCA), proxyCA: certificates(now, there.proxyCA, i.proxyCA),
		headers: Headers{
			Username: unique(there.headers.Username, i.headers.Username), UID: unique(there.headers.UID, i.headers.UID),
			Group:         unique(there.headers.Group, i.headers.Group),
			ExtraPrefixes: unique(there.headers.ExtraPrefixes, i.headers.ExtraPrefixes),
			AllowedNames:  unique(there.headers.AllowedNames, i.headers.AllowedNames),
		},
	}
}

// data returns the data of the ConfigMap. Headers are omitted without an authority of front proxies.
func (i information) data() map[string]string {
	data := map[string]string{}
	if len(i.clientCA) > 0 {
		data[keyClientCA] = string(i.clientCA)
	}
	if len(i.proxyCA) == 0 {
		return data
	}
	data[keyProxyCA] = string(i.proxyCA)
	for key, values := range map[string][]string{
		keyUsername: i.headers.Username, keyGroup: i.headers.Group, keyExtraPrefixes: i.headers.ExtraPrefixes,
		keyAllowedNames: i.headers.AllowedNames, keyUID: i.headers.UID,
	} {
		if key == keyUID && len(values) == 0 {
			continue
		}
		text, _ := json.Marshal(values) // strings always encode
		data[key] = string(text)
	}
	return data
}

// grace is how long after its end an authority is still named, since clocks differ.
const grace = 5 * time.Minute

// certificates returns the unexpired certificates of PEM bundles, without duplicates.
func certificates(now time.Time, bundles ...[]byte) []byte {
	var all []byte
	seen := map[string]bool{}
	for _, bundle := range bundles {
		for {
			var block *pem.Block
			if block, bundle = pem.Decode(bundle); block == nil {
				break
			}
			cert, err := x509.ParseCertificate(block.Bytes)
			if block.Type != "CERTIFICATE" || err != nil || seen[string(cert.Raw)] ||
				!cert.NotAfter.After(now.Add(-grace)) {
				continue
			}
			seen[string(cert.Raw)] = true
			all = append(all, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: cert.Raw})...)
		}
	}
	return all
}

// unique returns the values of both lists, each once; never nil.
func unique(a, b []string) []string {
	all := []string{}
	for _, value := range slices.Concat(a, b) {
		if !slices.Contains(all, value) {
			all = append(all, value)
		}
	}
	return all
}
