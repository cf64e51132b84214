;; Unpacks the module inside the default entry (unpack.ts), in place. In JavaScript the loop runs before it is optimised, and takes
;; three times as long. The build (scripts/package.mjs) writes the tables and the pages that the text takes in place of the marks.
(module
  ;; A table of 128 bytes for single characters, one for what follows "}" and one for what follows "~".
  (memory (export "memory") PAGES)
  (data (i32.const 0) "TABLES")

  ;; The text begins at 65536, as does what it is unpacked to. Takes the text's end, gives the end of what was unpacked.
  (func (export "unpack") (param $end i32) (result i32)
    (local $from i32) (local $to i32) (local $character i32)
    (local.set $to (local.tee $from (i32.const 65536)))
    (loop $next
      (local.set $character (i32.load8_u (local.get $from)))
      (if (i32.ge_u (local.get $character) (i32.const 125)) ;; "}"
        (then
          (local.set $from (i32.add (local.get $from) (i32.const 1)))
          (local.set $character
            (i32.add
              (i32.mul (i32.sub (local.get $character) (i32.const 124)) (i32.const 128))
              (i32.load8_u (local.get $from))))))
      (i32.store8 (local.get $to) (i32.load8_u (local.get $character)))
      (local.set $to (i32.add (local.get $to) (i32.const 1)))
      (local.set $from (i32.add (local.get $from) (i32.const 1)))
      (br_if $next (i32.lt_u (local.get $from) (local.get $end))))
    (local.get $to)))
