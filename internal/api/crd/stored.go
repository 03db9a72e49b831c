package crd

import (
	"bytes"
	"encoding/json"
	"slices"

	kjson "sigs.k8s.io/json"

	"github.com/bowsprit/bowsprit/internal/api/catalog"
	"github.com/bowsprit/bowsprit/internal/api/crd/rewrite"
)

// Form stores definitions in v1beta1, like kube-apiserver, so that either can read the other's. Everything above the
// store uses v1.
//
// Schemas, nearly all of a definition, are the same in both versions. So for definitions from Encode bytes are copied
// except for the few differences; definitions stored by another server are decoded completely.
func Form() *catalog.Form {
	return &catalog.Form{Version: "v1beta1", Encode: toStored, Decode: fromStored}
}

var (
	betaPrefix = []byte(`{"apiVersion":"` + betaVersion + `"`)
	v1Prefix   = []byte(`{"apiVersion":"` + v1Version + `"`)
)

// toStored returns the stored bytes for a definition of v1 with sorted keys.
func toStored(raw []byte) ([]byte, error) {
	preserve := false
	r := rewrite.New(raw, func(columns any) { renameEach(columns, "jsonPath", "JSONPath") })
	r.Replace(len(`{"apiVersion":`), len(v1Prefix), []byte(`"`+betaVersion+`"`))
	err := r.Definition(func(m rewrite.Entry) error {
		switch m.Key {
		case `"conversion"`:
			return r.Edit(m, conversionToBeta)
		case `"preserveUnknownFields"`:
			preserve = true
		case `"scope"`:
			if !preserve {
				r.Replace(m.Start, m.Start, []byte(`"preserveUnknownFields":false,`))
			}
		case `"versions"`:
			r.Replace(m.Start, m.Start, slices.Concat([]byte(`"version":`), r.First(), []byte(`,`)))
		}
		return nil
	})
	if err == nil && bytes.HasPrefix(raw, v1Prefix) {
		return r.Bytes(), nil
	}
	return decoded(raw, toBeta)
}

// fromStored returns a stored definition in v1. Definitions of older servers may lack defaults.
func fromStored(raw []byte) ([]byte, error) {
	if bytes.HasPrefix(raw, v1Prefix) {
		return raw, nil
	}
	if bytes.HasPrefix(raw, betaPrefix) {
		r := rewrite.New(raw, func(columns any) { renameEach(columns, "JSONPath", "jsonPath") })
		r.Replace(len(`{"apiVersion":`), len(betaPrefix), []byte(`"`+v1Version+`"`))
		seen := 0
		err := r.Definition(func(m rewrite.Entry) error {
			switch m.Key {
			case `"conversion"`:
				seen++
				return r.Edit(m, conversionToV1)
			case `"preserveUnknownFields"`:
				seen++
				if string(m.Value) == "false" {
					r.Remove(m)
				}
			case `"version"`:
				seen++
				r.Remove(m)
			case `"validation"`, `"subresources"`, `"additionalPrinterColumns"`, `"selectableFields"`:
				return rewrite.ErrUnusual
			}
			return nil
		})
		if err == nil && seen == 3 {
			return r.Bytes(), nil
		}
	}
	return decoded(raw, func(obj catalog.Object) {
		if obj["apiVersion"] == betaVersion {
			defaultBeta(obj)
			toV1(obj)
		}
	})
}

// decoded decodes a definition, lets f change it, and encodes it.
func decoded(raw []byte, f func(catalog.Object)) ([]byte, error) {
	var obj map[string]any
	if err := kjson.UnmarshalCaseSensitivePreserveInts(raw, &obj); err != nil {
		return nil, err
	}
	f(obj)
	return json.Marshal(obj)
}

// webhookFields maps fields of spec.conversion in v1beta1 to their names in "webhook" of v1.
var webhookFields = map[string]string{
	"webhookClientConfig": "clientConfig", "conversionReviewVersions": "conversionReviewVersions",
}

// conversionToBeta brings spec.conversion of v1 into v1beta1.
func conversionToBeta(conversion map[string]any) {
	webhook, _ := conversion["webhook"].(map[string]any)
	delete(conversion, "webhook")
	for beta, v1 := range webhookFields {
		if v := webhook[v1]; v != nil {
			conversion[beta] = v
		}
	}
}

// conversionToV1 brings spec.conversion of v1beta1 into v1.
func conversionToV1(conversion map[string]any) {
	webhook := map[string]any{}
	for beta, v1 := range webhookFields {
		if v := conversion[beta]; v != nil {
			webhook[v1] = v
		}
		delete(conversion, beta)
	}
	if len(webhook) > 0 {
		if webhook["conversionReviewVersions"] == nil {
			webhook["conversionReviewVersions"] = nil // required in v1
		}
		conversion["webhook"] = webhook
	}
}
