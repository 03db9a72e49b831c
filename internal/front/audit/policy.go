package audit

import (
	"fmt"
	"os"

	auditapi "k8s.io/apiserver/pkg/apis/audit"
	"k8s.io/apiserver/pkg/audit"
	"k8s.io/apiserver/pkg/audit/policy"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"sigs.k8s.io/yaml"
)

// changesPatch is the value of a rule's field changes that records a patch instead of objects.
const changesPatch = "JSONPatch"

// levelPatch represents, inside this package only, the level of a rule with changes: JSONPatch. Kubernetes' evaluator
// returns the level of the matching rule, so levelPatch identifies such a rule.
const levelPatch auditapi.Level = "RequestResponse with JSONPatch"

// loadPolicy reads the file of --audit-policy-file. It is a Policy of audit.k8s.io/v1, validated like in
// kube-apiserver. Its rules may have the additional field changes (docs/design/audit.md).
func loadPolicy(path string) (audit.PolicyRuleEvaluator, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("loading audit policy file: failed to read file path %q: %w", path, err)
	}
	evaluator, err := parsePolicy(text)
	if err != nil {
		return nil, fmt.Errorf("loading audit policy file: %w: from file %v", err, path)
	}
	return evaluator, nil
}

func parsePolicy(text []byte) (audit.PolicyRuleEvaluator, error) {
	text, patched, err := takeChanges(text)
	if err != nil {
		return nil, err
	}
	p, err := policy.LoadPolicyFromBytes(text)
	if err != nil {
		return nil, err
	}
	for i := range p.Rules {
		if !patched[i] {
			continue
		}
		if p.Rules[i].Level != auditapi.LevelRequestResponse {
			return nil, fmt.Errorf("rules[%d].changes: a patch shows the stored object, so the level must be %s", i,
				auditapi.LevelRequestResponse)
		}
		p.Rules[i].Level = levelPatch
	}
	evaluator := policy.NewPolicyRuleEvaluator(p)
	if len(p.Rules) > 0 && unconditional(&p.Rules[0]) {
		return constant(evaluator.EvaluatePolicyRule(attributes{&Received{}})), nil
	}
	return evaluator, nil
}

// unconditional reports whether a rule is about every request.
func unconditional(rule *auditapi.PolicyRule) bool {
	return len(rule.Users)+len(rule.UserGroups)+len(rule.Verbs)+
		len(rule.Resources)+len(rule.Namespaces)+len(rule.NonResourceURLs) == 0
}

// constant evaluates a policy with the same result for every request, for example one that records all metadata.
type constant audit.RequestAuditConfig

// EvaluatePolicyRule implements audit.PolicyRuleEvaluator.
func (c constant) EvaluatePolicyRule(authorizer.Attributes) audit.RequestAuditConfig {
	return audit.RequestAuditConfig(c)
}

// takeChanges returns the policy without the field changes, which Kubernetes' decoder rejects, and the rules that had
// it.
func takeChanges(text []byte) (rest []byte, patched map[int]bool, err error) {
	var doc map[string]any
	if yaml.Unmarshal(text, &doc) != nil {
		return text, nil, nil // Kubernetes' decoder reports the error
	}
	rules, _ := doc["rules"].([]any)
	patched = map[int]bool{}
	for i := range rules {
		rule, _ := rules[i].(map[string]any)
		value, ok := rule["changes"]
		if !ok {
			continue
		}
		if value != changesPatch {
			return nil, nil, fmt.Errorf("rules[%d].changes: unknown value %v, the only value is %s", i, value,
				changesPatch)
		}
		patched[i] = true
		delete(rule, "changes")
	}
	if len(patched) == 0 {
		return text, nil, nil // unchanged, so that the decoder sees repeated fields too
	}
	rest, err = yaml.Marshal(doc)
	return rest, patched, err
}
