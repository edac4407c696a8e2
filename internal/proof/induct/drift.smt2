; A client's deadline comes before the node forgets the lease, for clocks with any offset whose
; rates differ from real time by at most 0.5 %, if the client takes 1 % off the TTL.
(set-logic QF_NRA)
(declare-const ttl Real)     ; what the node is asked for
(declare-const drift Real)   ; what the client takes off
(declare-const sent Real)    ; when the request leaves, in real time
(declare-const granted Real) ; when the node grants
(declare-const used Real)    ; when the client's clock shows its deadline
(declare-const kept Real)    ; when the node's clock shows the end of the lease
(declare-const client Real)  ; the rates of the two clocks
(declare-const node Real)
(assert (and (> ttl 0.0) (>= drift (* 0.01 ttl)) (>= granted sent)))
(assert (and (> client 0.995) (< client 1.005) (> node 0.995) (< node 1.005)))
(assert (= (* client (- used sent)) (- ttl drift)))
(assert (= (* node (- kept granted)) ttl))
(assert (> used kept))
(check-sat)
