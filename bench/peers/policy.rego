# The same checks as the benchmark's LimitRange and MetadataPolicy, for OPA's server and regopy.
package system

main := {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response}

response := {"uid": input.request.uid, "allowed": count(deny) == 0, "status": status}

status := {"message": concat("; ", sort(deny))}

bounds := {"cpu": {"min": 0.05, "max": 4}, "memory": {"min": 33554432, "max": 8589934592}}

lists := ["containers", "initContainers"]

amount("cpu", q) := units.parse(q)

amount("memory", q) := units.parse_bytes(q)

deny contains "label team is required" if not input.request.object.metadata.labels.team

deny contains msg if {
	some list in lists
	some c in input.request.object.spec[list]
	some r, b in bounds
	amount(r, c.resources.limits[r]) > b.max
	msg := sprintf("%s: %s limit above the maximum", [c.name, r])
}

deny contains msg if {
	some list in lists
	some c in input.request.object.spec[list]
	some r, b in bounds
	amount(r, c.resources.requests[r]) < b.min
	msg := sprintf("%s: %s request below the minimum", [c.name, r])
}

deny contains msg if {
	some list in lists
	some c in input.request.object.spec[list]
	some r, _ in bounds
	some k in ["limits", "requests"]
	not c.resources[k][r]
	msg := sprintf("%s: %s %s must be given", [c.name, r, k])
}
