-- try calls a function, and returns what it returns; if it fails, the error as a reply.
local function try(f, ...)
  local well, said = pcall(f, ...)
  if well then
    return said
  end
  return type(said) == 'table' and said or {err = said} -- servers before version 7 fail with a text
end
